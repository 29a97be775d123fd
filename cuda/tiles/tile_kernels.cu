#include <algorithm>

#include "core/pair_sink.h"
#include "cuda/device/kernel_helpers.cuh"
#include "cuda/device/tuning.h"
#include "cuda/tiles/tile_counting.cuh"
#include "cuda/tiles/tile_kernels.h"
#include "cuda/tiles/tile_screen.cuh"

namespace gpujoin::cuda {
namespace {

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

__device__ bool tiles_may_meet(const BoxView& left, const BoxView& right, uint2 tile,
                               double reach) {
  const auto gap = [](double a_low, double a_high, double b_low, double b_high) {
    return interval_gap(a_low, a_high, b_low, b_high);
  };
  return boxes_may_meet(sum_of_squares(left, right, tile, gap), reach);
}

__device__ bool tiles_surely_match(const BoxView& left, const BoxView& right, uint2 tile,
                                   double accept) {
  const auto span = [](double a_low, double a_high, double b_low, double b_high) {
    return interval_span(a_low, a_high, b_low, b_high);
  };
  return boxes_surely_match(sum_of_squares(left, right, tile, span), accept);
}

/// Tiles are listed in bands of kBandRows rows, each band column by column, so that the tiles
/// compared at the same time are few on both sides.
constexpr std::uint32_t kBandRows = 16;

__global__ void __launch_bounds__(kBlockThreads)
    list_kernel(BoxView left, BoxView right, bool half, double reach, WholeTiles whole,
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
      listed = (!half || tile.x <= tile.y) && tiles_may_meet(left, right, tile, reach);
    }
  }
  if (listed) {
    const std::uint64_t a = min(kScreenTile, left_points - tile.x * kScreenTile);
    const std::uint64_t b = min(kScreenTile, right_points - tile.y * kScreenTile);
    pairs = half && tile.x == tile.y ? a * (a - 1) / 2 : a * b;
    if (whole.accept >= 0 && !(whole.self_join && tile.x == tile.y) &&
        tiles_surely_match(left, right, tile, whole.accept)) {
      listed = false;
      counted = pairs;
      if (whole.rows != nullptr) {
        atomicAdd(&whole.rows[tile.x], static_cast<unsigned>(b));
        if (whole.both_ends) atomicAdd(&whole.rows[tile.y], static_cast<unsigned>(a));
      }
    }
  }
  const unsigned members = __ballot_sync(~0u, listed);
  if (members != 0) {
    const unsigned lane = threadIdx.x % 32;
    unsigned place = 0;
    if (lane == 0) place = atomicAdd(list.size, __popc(members));
    place = __shfl_sync(~0u, place, 0) + __popc(members & ((1u << lane) - 1));
    if (listed) list.tiles[place] = tile;
  }
  add_over_block(pairs, candidates);
  if (whole.accept >= 0) add_over_block(counted, whole.total);
}

__global__ void add_rows_kernel(const std::uint32_t* rows, std::uint32_t points,
                                std::uint32_t* counts) {
  const std::uint64_t p = global_thread();
  if (p < points) counts[p] += rows[p / kScreenTile];
}

/// The number of candidates to go through: 0 where all are wanted and not all fitted.
__device__ unsigned long long listed_candidates(const CandidateList& list, bool all) {
  const unsigned long long found = *list.found;
  return found <= list.capacity ? found : all ? 0 : list.capacity;
}

/// Ranks the pairs of points, and keeps their distances, for a second pass to write them.
template <PairNeed Need>
struct RankSink {
  static constexpr PairNeed kNeed = Need;
  TileRanks to;

  __device__ void take_candidate(unsigned long long candidate, bool found, std::uint32_t i,
                                 std::uint32_t, double distance) const {
    if (Need == PairNeed::kDistance) to.distances[candidate] = distance;
    to.ranks[candidate] = found ? atomicAdd(&to.counts[i - to.base], 1u) : TileRanks::kNoRank;
  }
};

/// Decides candidates. A sink takes the pairs, each on some thread; or it has
///
///   void take_candidate(unsigned long long candidate, bool found, std::uint32_t left,
///                       std::uint32_t right, double distance);
///
/// for every candidate, whose number it is given, pair or not; such a sink gets all or none.
template <class T, PairSink Sink>
__global__ void __launch_bounds__(kBlockThreads)
    decide_kernel(Decision decision, CandidateList candidates, Sink sink) {
  constexpr bool kDistances = Sink::kNeed == PairNeed::kDistance;
  constexpr bool kEveryCandidate = requires {
    sink.take_candidate(0ull, true, std::uint32_t{}, std::uint32_t{}, 0.0);
  };
  const unsigned long long size = listed_candidates(candidates, kEveryCandidate);
  unsigned long long found = 0, rechecked = 0, themselves = 0;
  for (unsigned long long c = global_thread(); c < size; c += global_threads()) {
    const uint2 pair = candidates.pairs[c];
    const std::uint32_t i = pair.x & ~CandidateList::kSurely, j = pair.y;
    const bool surely = (pair.x & CandidateList::kSurely) != 0;
    bool within = surely;
    double distance = 0;
    if (!surely || kDistances) {
      const double raw = raw_of_pair<T>(decision, i, j);
      rechecked += !surely;
      within = raw <= decision.threshold;
      if (kDistances) distance = distance_from_raw(decision.metric, raw);
    }
    found += within;
    themselves += within && decision.self_join && i == j;
    if constexpr (kEveryCandidate)
      sink.take_candidate(c, within, i, j, distance);
    else if constexpr (Sink::kNeed != PairNeed::kNumber)
      if (within) sink.take(i, j, distance);
  }
  add_over_block(found, decision.totals);
  add_over_block(rechecked, decision.totals + 1);
  add_over_block(themselves, decision.totals + 2);
}

__global__ void __launch_bounds__(kBlockThreads)
    scatter_kernel(TileRanks ranks, CandidateList candidates, const std::uint64_t* offsets,
                   std::uint32_t points_with_themselves, std::uint32_t* neighbors,
                   double* distances) {
  const std::uint64_t first = global_thread();
  const std::uint64_t step = global_threads();
  const unsigned long long size = listed_candidates(candidates, true);
  for (std::uint64_t c = first; c < size; c += step) {
    const std::uint32_t rank = ranks.ranks[c];
    if (rank == TileRanks::kNoRank) continue;
    const uint2 pair = candidates.pairs[c];
    const std::uint32_t i = pair.x & ~CandidateList::kSurely;
    const std::uint64_t place = offsets[i - ranks.base] + rank;
    neighbors[place] = pair.y;
    if (distances != nullptr) distances[place] = ranks.distances[c];
  }
  for (std::uint64_t p = first; p < points_with_themselves; p += step) {
    neighbors[offsets[p]] = ranks.base + static_cast<std::uint32_t>(p);
    if (distances != nullptr) distances[offsets[p]] = 0;
  }
}

__global__ void fill_kernel(std::uint32_t* counts, std::uint64_t size, std::uint32_t value) {
  const std::uint64_t i = global_thread();
  if (i < size) counts[i] = value;
}

unsigned resident_blocks(int multiprocessors) {
  return static_cast<unsigned>(multiprocessors) * kBlocksPerMultiprocessor;
}

template <class Taker>
void screen(const ScreenView& view, const TileList& list, const Taker& taker, int multiprocessors,
            cudaStream_t stream) {
  check(cudaFuncSetAttribute(screen_kernel<Taker>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(sizeof(ScreenStorage))),
        "setting up the screen");
  screen_kernel<<<static_cast<unsigned>(multiprocessors) * kScreenBlocksPerMultiprocessor,
                  kScreenThreads, sizeof(ScreenStorage), stream>>>(view, list, taker);
  check_launch("screening tiles");
}

template <PairSink Sink>
void decide(const Decision& decision, const CandidateList& candidates, const Sink& sink,
            int multiprocessors, cudaStream_t stream) {
  const unsigned blocks = resident_blocks(multiprocessors);
  if (decision.scalar == ScalarType::kFloat32)
    decide_kernel<float><<<blocks, kBlockThreads, 0, stream>>>(decision, candidates, sink);
  else
    decide_kernel<double><<<blocks, kBlockThreads, 0, stream>>>(decision, candidates, sink);
  check_launch("deciding pairs");
}

}  // namespace

void launch_list(const TilePoints& left, const TilePoints& right, bool half,
                 std::uint32_t box_columns, double reach, const WholeTiles& whole,
                 const TileRectangle& rectangle, const TileList& list,
                 unsigned long long* candidates, cudaStream_t stream) {
  const std::uint64_t rows = rectangle.end_row - rectangle.first_row;
  const std::uint64_t bands = (rows + kBandRows - 1) / kBandRows;
  const std::uint64_t columns = rectangle.end_column - rectangle.first_column;
  list_kernel<<<blocks_for(bands * kBandRows * columns), kBlockThreads, 0, stream>>>(
      {left.boxes.data(), box_columns}, {right.boxes.data(), box_columns}, half, reach, whole,
      rectangle, left.points, right.points, list, candidates);
  check_launch("listing tiles");
}

void launch_add_rows(const WholeTiles& whole, std::uint32_t points, std::uint32_t* counts,
                     cudaStream_t stream) {
  if (whole.rows == nullptr || points == 0) return;
  add_rows_kernel<<<blocks_for(points), kBlockThreads, 0, stream>>>(whole.rows, points, counts);
  check_launch("adding counts");
}

void launch_screen(const ScreenView& view, const TileList& list, const CandidateList& candidates,
                   int multiprocessors, cudaStream_t stream) {
  screen(view, list, PairLister{candidates}, multiprocessors, stream);
}

void launch_count(const ScreenView& view, const TileList& list, const Decision& decision,
                  const TileCounts& counts, const CandidateList& open, int multiprocessors,
                  cudaStream_t stream) {
  const auto count = [&](const auto& sink) {
    screen(view, list, PairCounter{decision, open, sink}, multiprocessors, stream);
    decide(decision, open, sink, multiprocessors, stream);
  };
  if (counts.counts != nullptr)
    count(CountSink{counts});
  else
    count(TotalSink{});
}

void launch_decide(const Decision& decision, const TileRanks& ranks,
                   const CandidateList& candidates, int multiprocessors, cudaStream_t stream) {
  if (ranks.distances != nullptr)
    decide(decision, candidates, RankSink<PairNeed::kDistance>{ranks}, multiprocessors, stream);
  else
    decide(decision, candidates, RankSink<PairNeed::kPosition>{ranks}, multiprocessors, stream);
}

void launch_scatter(const TileRanks& ranks, const CandidateList& candidates,
                    const std::uint64_t* offsets, bool themselves, std::uint32_t points,
                    std::uint32_t* neighbors, double* distances, int multiprocessors,
                    cudaStream_t stream) {
  scatter_kernel<<<resident_blocks(multiprocessors), kBlockThreads, 0, stream>>>(
      ranks, candidates, offsets, themselves ? points : 0, neighbors, distances);
  check_launch("writing pairs");
}

void fill_counts(std::uint32_t* counts, std::uint64_t size, std::uint32_t value,
                 cudaStream_t stream) {
  if (size == 0) return;
  fill_kernel<<<blocks_for(size), kBlockThreads, 0, stream>>>(counts, size, value);
  check_launch("clearing counts");
}

}  // namespace gpujoin::cuda
