// The search for the neighbours of one row, in many dimensions: the right points, rounded, are read
// once, as fast as memory gives them. All work is in the stream at once. Distances and proofs are
// those of screened_search.
#pragma once

#include <memory>

#include "cuda/device/memory.h"
#include "cuda/nearest/nearest_side.h"
#include "cuda/nearest/neighbor_search.h"

namespace gpujoin::cuda {

/// Bytes of the device that the search takes, beside what a few rows need.
std::uint64_t row_search_bytes(const NearestSide& right);

/// As make_screened_search(), for a left side of one point.
std::unique_ptr<NeighborSearch> make_row_search(const NeighborQuestion& question,
                                                const NearestSide& left, const NearestSide& right,
                                                MemoryBudget& budget, int multiprocessors,
                                                cudaStream_t stream);

}  // namespace gpujoin::cuda
