// Which pairs of tiles are compared: those whose boxes may hold pairs, as far as they matter.
#pragma once

#include "cuda/device/kernel_helpers.cuh"
#include "cuda/device/tuning.h"
#include "cuda/tiles/tile_kernels.h"

namespace gpujoin::cuda {

struct BoxView {
  const double* boxes;
  std::uint32_t columns;

  __device__ double low(std::uint32_t tile, std::uint32_t c) const {
    return boxes[std::uint64_t{tile} * 2 * columns + c];
  }
  __device__ double high(std::uint32_t tile, std::uint32_t c) const {
    return boxes[(std::uint64_t{tile} * 2 + 1) * columns + c];
  }
};

/// The sum of squares of what `measure` makes of the intervals of two tiles' boxes, in column
/// order.
template <typename Measure>
__device__ double sum_of_squares(const BoxView& left, const BoxView& right, uint2 tile,
                                 Measure measure) {
  double squares = 0;
  for (std::uint32_t c = 0; c < left.columns; ++c) {
    const double length = measure(left.low(tile.x, c), left.high(tile.x, c), right.low(tile.y, c),
                                  right.high(tile.y, c));
    squares += length * length;
  }
  return squares;
}

__device__ inline bool tiles_may_meet(const BoxView& left, const BoxView& right, uint2 tile,
                                      double reach) {
  const auto gap = [](double a_low, double a_high, double b_low, double b_high) {
    return interval_gap(a_low, a_high, b_low, b_high);
  };
  return boxes_may_meet(sum_of_squares(left, right, tile, gap), reach);
}

__device__ inline bool tiles_surely_match(const BoxView& left, const BoxView& right, uint2 tile,
                                          double accept) {
  const auto span = [](double a_low, double a_high, double b_low, double b_high) {
    return interval_span(a_low, a_high, b_low, b_high);
  };
  return boxes_surely_match(sum_of_squares(left, right, tile, span), accept);
}

/// Appends a pair of tiles on the threads that have one; all threads of a warp.
__device__ inline void append_tile(const TileList& list, uint2 tile, bool listed) {
  const unsigned members = __ballot_sync(~0u, listed);
  if (members == 0) return;
  const unsigned lane = threadIdx.x % 32;
  unsigned place = 0;
  if (lane == 0) place = atomicAdd(list.size, __popc(members));
  place = __shfl_sync(~0u, place, 0) + __popc(members & ((1u << lane) - 1));
  if (listed) list.tiles[place] = tile;
}

/// Which tiles matter to whoever looks at their pairs. leave_out(): no pair of theirs does.
/// take_whole(): all their pairs are within eps; returns whether that is all there is to know.
struct AllTiles {
  __device__ bool leave_out(uint2) const { return false; }
  __device__ bool take_whole(uint2) const { return true; }
};

/// Tiles are listed in bands of kBandRows rows, each band column by column, so that the tiles
/// compared at the same time are few on both sides.
inline constexpr std::uint32_t kBandRows = 16;

template <class Tiles>
__global__ void __launch_bounds__(kBlockThreads)
    list_kernel(BoxView left, BoxView right, bool half, double reach, WholeTiles whole, Tiles tiles,
                TileRectangle rectangle, std::uint32_t left_points, std::uint32_t right_points,
                TileList list, unsigned long long* candidates) {
  const std::uint32_t rows = rectangle.end_row - rectangle.first_row;
  const std::uint32_t columns = rectangle.end_column - rectangle.first_column;
  const std::uint64_t index = global_thread();
  const auto band = static_cast<std::uint32_t>(index / (std::uint64_t{kBandRows} * columns));
  const auto within = static_cast<std::uint32_t>(index % (std::uint64_t{kBandRows} * columns));
  unsigned long long pairs = 0, counted = 0;
  bool listed = false;
  uint2 tile{};
  if (std::uint64_t{band} * kBandRows < rows) {
    const std::uint32_t band_rows = min(kBandRows, rows - band * kBandRows);
    if (within < band_rows * columns) {
      tile.x = rectangle.first_row + band * kBandRows + within % band_rows;
      tile.y = rectangle.first_column + within / band_rows;
      listed = (!half || tile.x <= tile.y) && !tiles.leave_out(tile) &&
               tiles_may_meet(left, right, tile, reach);
    }
  }
  if (listed) {
    const std::uint64_t a = min(kScreenTile, left_points - tile.x * kScreenTile);
    const std::uint64_t b = min(kScreenTile, right_points - tile.y * kScreenTile);
    pairs = half && tile.x == tile.y ? a * (a - 1) / 2 : a * b;
    if (whole.accept >= 0 && !(whole.self_join && tile.x == tile.y) &&
        tiles_surely_match(left, right, tile, whole.accept) && tiles.take_whole(tile)) {
      listed = false;
      counted = pairs;
      if (whole.rows != nullptr) {
        atomicAdd(&whole.rows[tile.x], static_cast<unsigned>(b));
        if (whole.both_ends) atomicAdd(&whole.rows[tile.y], static_cast<unsigned>(a));
      }
    }
  }
  append_tile(list, tile, listed);
  add_over_block(pairs, candidates);
  if (whole.accept >= 0) add_over_block(counted, whole.total);
}

/// launch_list() of the tiles that matter.
template <class Tiles>
void list_tiles(const TilePoints& left, const TilePoints& right, bool half,
                std::uint32_t box_columns, double reach, const WholeTiles& whole,
                const Tiles& tiles, const TileRectangle& rectangle, const TileList& list,
                unsigned long long* candidates, cudaStream_t stream) {
  const std::uint64_t rows = rectangle.end_row - rectangle.first_row;
  const std::uint64_t bands = (rows + kBandRows - 1) / kBandRows;
  const std::uint64_t columns = rectangle.end_column - rectangle.first_column;
  list_kernel<<<blocks_for(bands * kBandRows * columns), kBlockThreads, 0, stream>>>(
      BoxView{left.boxes.data(), box_columns}, BoxView{right.boxes.data(), box_columns}, half,
      reach, whole, tiles, rectangle, left.points, right.points, list, candidates);
  check_launch("listing tiles");
}

}  // namespace gpujoin::cuda
