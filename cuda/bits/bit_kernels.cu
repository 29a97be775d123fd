#include <algorithm>

#include "core/hamming.h"
#include "core/pair_sink.h"
#include "cuda/bits/bit_kernels.h"
#include "cuda/device/kernel_helpers.cuh"
#include "cuda/device/tuning.h"

namespace gpujoin::cuda {
namespace {

/// Right rows that are compared between two branches: most of them have no pair.
constexpr std::uint32_t kRowsAtOnce = 8;
/// Words in shared memory.
constexpr std::uint32_t kTileWords = 4096;
static_assert(kTileWords / kMostBitWords >= kRowsAtOnce);

/// Right rows that lie in shared memory at a time, a multiple of kRowsAtOnce.
GPUJOIN_HD constexpr std::uint32_t tile_rows(std::uint32_t words) {
  constexpr std::uint32_t kMost = 1024;
  const std::uint32_t rows = kTileWords / words / kRowsAtOnce * kRowsAtOnce;
  return rows < kMost ? rows : kMost;
}

struct BitTotalSink {
  __device__ void take(std::uint32_t, std::uint32_t, std::uint32_t, BitTotals*) const {}
};

struct BitCountSink {
  TileCounts to;

  __device__ void take(std::uint32_t i, std::uint32_t j, std::uint32_t, BitTotals*) const {
    using Ends = TileCounts::Ends;
    const bool right_end = to.ends == Ends::kSmallerEnd && !counts_at_left(to.ids, i, j);
    atomicAdd(&to.counts[right_end ? j : i], 1u);
    if (to.ends == Ends::kBoth && i != j) atomicAdd(&to.counts[j], 1u);
  }
};

struct BitListSink {
  BitList to;

  __device__ void take(std::uint32_t i, std::uint32_t j, std::uint32_t distance,
                       BitTotals* totals) const {
    const std::uint32_t rank = atomicAdd(&to.counts[i - to.base], 1u);
    const unsigned long long place = atomicAdd(&totals->listed, 1ull);
    if (place < to.capacity) to.entries[place] = {i, j, rank, distance};
  }
};

/// The bits in which a left row differs from kRowsAtOnce right ones in shared memory. Words of a
/// left row are read by neighbouring threads from neighbouring places.
template <std::uint32_t kWords>
__device__ void compare(const BitView& view, std::uint32_t left, const std::uint64_t* rows,
                        std::uint64_t word, std::uint32_t (&counts)[kRowsAtOnce]) {
  if constexpr (kWords == 1) {
#pragma unroll
    for (std::uint32_t t = 0; t < kRowsAtOnce; ++t) counts[t] = count_bits(word ^ rows[t]);
  } else {
#pragma unroll
    for (std::uint32_t t = 0; t < kRowsAtOnce; ++t) counts[t] = 0;
    for (std::uint32_t w = 0; w < view.words; ++w) {
      const std::uint64_t own = view.left[std::uint64_t{w} * view.left_rows + left];
#pragma unroll
      for (std::uint32_t t = 0; t < kRowsAtOnce; ++t)
        counts[t] += count_bits(own ^ rows[t * view.words + w]);
    }
  }
}

/// A thread has a left row, and a thread block passes every gridDim.y-th tile of right rows.
template <std::uint32_t kWords, class Sink>
__global__ void __launch_bounds__(kBlockThreads)
    compare_kernel(BitView view, PairRectangle rectangle, Sink sink, BitTotals* totals) {
  __shared__ std::uint64_t tile[kTileWords];
  const std::uint32_t words = kWords > 0 ? kWords : view.words;
  const std::uint32_t step = tile_rows(words);
  const std::uint64_t place = rectangle.first_row + global_thread();
  const bool has_row = place < rectangle.end_row;
  const auto i = static_cast<std::uint32_t>(place);
  const std::uint64_t word = kWords == 1 && has_row ? view.left[place] : 0;
  const std::uint64_t first_of_block = place - threadIdx.x;
  const bool upper = view.half == Half::kUpper || view.half == Half::kAndDiagonal;
  unsigned long long found = 0, themselves = 0;
  for (std::uint64_t first = rectangle.first_column + std::uint64_t{blockIdx.y} * step;
       first < rectangle.end_column; first += std::uint64_t{gridDim.y} * step) {
    const auto rows = static_cast<std::uint32_t>(
        min(std::uint64_t{step}, std::uint64_t{rectangle.end_column} - first));
    if (upper && first + rows <= first_of_block) continue;  // below the diagonal, for all threads
    if (__syncthreads_or(*reinterpret_cast<const volatile unsigned*>(view.stop) != 0)) break;
    for (std::uint32_t at = threadIdx.x; at < rows * words; at += kBlockThreads)
      tile[at] = view.right[first * words + at];
    __syncthreads();
    if (!has_row) continue;
    for (std::uint32_t row = 0; row < rows; row += kRowsAtOnce) {
      std::uint32_t counts[kRowsAtOnce];
      compare<kWords>(view, i, tile + row * words, word, counts);
      std::uint32_t least = counts[0];
#pragma unroll
      for (std::uint32_t t = 1; t < kRowsAtOnce; ++t) least = min(least, counts[t]);
      if (least > view.most) continue;
      for (std::uint32_t t = 0; t < kRowsAtOnce; ++t) {
        const auto j = static_cast<std::uint32_t>(first + row + t);
        if (counts[t] > view.most || row + t >= rows || !is_looked_at(view.half, i, j)) continue;
        ++found;
        themselves += i == j;
        sink.take(i, j, counts[t], totals);
      }
    }
  }
  __syncthreads();  // all threads are here, whichever tile they passed last
  add_over_block(found, &totals->pairs);
  add_over_block(themselves, &totals->themselves);
}

__global__ void place_kernel(BitList list, const BitTotals* totals, const std::uint64_t* offsets,
                             std::uint32_t* neighbors, double* distances) {
  if (totals->listed > list.capacity) return;
  for (std::uint64_t at = global_thread(); at < totals->listed; at += global_threads()) {
    const BitEntry entry = list.entries[at];
    const std::uint64_t place = offsets[entry.left - list.base] + entry.rank;
    neighbors[place] = entry.right;
    if (distances != nullptr) distances[place] = entry.distance;
  }
}

__global__ void transpose_kernel(const std::uint64_t* rows, std::uint32_t count,
                                 std::uint32_t words, std::uint64_t* columns) {
  const std::uint64_t row = global_thread();
  if (row >= count) return;
  for (std::uint32_t w = 0; w < words; ++w)
    columns[std::uint64_t{w} * count + row] = rows[row * words + w];
}

/// Several thread blocks share some left rows where there are few of them.
template <class Sink>
void compare(const BitView& view, const PairRectangle& rectangle, const Sink& sink,
             BitTotals* totals, int multiprocessors, cudaStream_t stream) {
  constexpr std::uint64_t kMostStripes = 1 << 12;
  const unsigned blocks = blocks_for(rectangle.end_row - rectangle.first_row);
  const std::uint64_t wanted =
      std::uint64_t{2} * kBlocksPerMultiprocessor * static_cast<unsigned>(multiprocessors);
  const std::uint64_t tiles =
      (rectangle.end_column - rectangle.first_column) / tile_rows(view.words) + 1;
  const auto stripes = static_cast<unsigned>(
      std::clamp<std::uint64_t>(wanted / blocks, 1, std::min(tiles, kMostStripes)));
  const dim3 grid(blocks, stripes);
  if (view.words == 1)
    compare_kernel<1><<<grid, kBlockThreads, 0, stream>>>(view, rectangle, sink, totals);
  else
    compare_kernel<0><<<grid, kBlockThreads, 0, stream>>>(view, rectangle, sink, totals);
  check_launch("comparing bits");
}

}  // namespace

void launch_transpose(const std::uint64_t* rows, std::uint32_t count, std::uint32_t words,
                      std::uint64_t* columns, cudaStream_t stream) {
  transpose_kernel<<<blocks_for(count), kBlockThreads, 0, stream>>>(rows, count, words, columns);
  check_launch("turning rows of bits");
}

void launch_count_bits(const BitView& view, const PairRectangle& rectangle,
                       const TileCounts& counts, BitTotals* totals, int multiprocessors,
                       cudaStream_t stream) {
  if (counts.counts != nullptr)
    compare(view, rectangle, BitCountSink{counts}, totals, multiprocessors, stream);
  else
    compare(view, rectangle, BitTotalSink{}, totals, multiprocessors, stream);
}

void launch_list_bits(const BitView& view, const PairRectangle& rectangle, const BitList& list,
                      BitTotals* totals, int multiprocessors, cudaStream_t stream) {
  compare(view, rectangle, BitListSink{list}, totals, multiprocessors, stream);
}

void launch_place_bits(const BitList& list, const BitTotals* totals, const std::uint64_t* offsets,
                       std::uint32_t* neighbors, double* distances, int multiprocessors,
                       cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(multiprocessors) * kBlocksPerMultiprocessor;
  place_kernel<<<blocks, kBlockThreads, 0, stream>>>(list, totals, offsets, neighbors, distances);
  check_launch("writing pairs of bits");
}

}  // namespace gpujoin::cuda
