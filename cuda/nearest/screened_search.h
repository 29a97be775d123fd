// The search for nearest neighbours in many dimensions: every pair is screened by tensor cores
// against a threshold of its left point, which shrinks while neighbours are found, and the
// definition decides what passes. For squared distances: L2, and cosine by directions.
#pragma once

#include <memory>

#include "cuda/device/memory.h"
#include "cuda/nearest/nearest_side.h"
#include "cuda/nearest/neighbor_search.h"

namespace gpujoin::cuda {

/// Sides that are rounded alike, of directions none of which is extreme. They stay until the search
/// has gone, and may be the same. Lists of candidates take `round_bytes` of the device, and of
/// fewer than a tile needs what it needs. Throws CudaError, MemoryLimitExceeded or std::bad_alloc.
std::unique_ptr<NeighborSearch> make_screened_search(const NeighborQuestion& question,
                                                     const NearestSide& left,
                                                     const NearestSide& right, MemoryBudget& budget,
                                                     HostBudget& host, std::uint64_t round_bytes,
                                                     int multiprocessors, cudaStream_t stream);

}  // namespace gpujoin::cuda
