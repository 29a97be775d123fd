// The kernels of the join of bits, launched: every pair of two ranges of rows compared.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/pair_rectangle.h"
#include "cuda/tiles/tile_kernels.h"

namespace gpujoin::cuda {

/// Words of a row at most: some rows of so many lie in shared memory.
inline constexpr std::uint32_t kMostBitWords = 512;

/// Both sides on the device.
struct BitView {
  const std::uint64_t* left;   ///< [words][left_rows]
  const std::uint64_t* right;  ///< [right_rows][words]
  std::uint32_t left_rows, right_rows;
  std::uint32_t words;
  std::uint32_t most;  ///< bits that a pair may differ in
  Half half;
  const unsigned* stop;  ///< nonzero on the device: leave
};

/// A pair with its place among those of its left row.
struct BitEntry {
  std::uint32_t left, right, rank, distance;
};

/// What a launch finds; `listed` may exceed the capacity: then the list did not fit and the rest is
/// lost.
struct BitTotals {
  unsigned long long pairs, themselves, listed;
};

/// Where pairs are listed, and counted by their left rows, from `base` on.
struct BitList {
  BitEntry* entries;
  std::uint64_t capacity;
  std::uint32_t* counts;  ///< counts[left - base]
  std::uint32_t base;
};

/// [rows][words] becomes [words][rows].
void launch_transpose(const std::uint64_t* rows, std::uint32_t count, std::uint32_t words,
                      std::uint64_t* columns, cudaStream_t stream);

/// Counts the pairs of the rectangle: adds to the totals, and to counts unless counts.counts is
/// null. Throws CudaError.
void launch_count_bits(const BitView& view, const PairRectangle& rectangle,
                       const TileCounts& counts, BitTotals* totals, int multiprocessors,
                       cudaStream_t stream);

/// Lists them, too.
void launch_list_bits(const BitView& view, const PairRectangle& rectangle, const BitList& list,
                      BitTotals* totals, int multiprocessors, cudaStream_t stream);

/// Writes a listed pair, unless the list did not fit, to place offsets[left - base] + rank, and its
/// distance unless `distances` is null.
void launch_place_bits(const BitList& list, const BitTotals* totals, const std::uint64_t* offsets,
                       std::uint32_t* neighbors, double* distances, int multiprocessors,
                       cudaStream_t stream);

}  // namespace gpujoin::cuda
