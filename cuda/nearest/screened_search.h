// The search for nearest neighbours in many dimensions: every pair is screened by tensor cores
// against a threshold of its left point, which shrinks while neighbours are found, and the
// definition decides what passes. For squared distances: L2, and cosine by directions.
#pragma once

#include <memory>

#include "cuda/device/memory.h"
#include "cuda/grid/grid_index.h"
#include "cuda/nearest/neighbor_search.h"
#include "engine/strategy/screen_frame.h"

namespace gpujoin::cuda {

/// One side's data as it was uploaded, and what is screened of it: the same, or for cosine the
/// directions, none of which is extreme.
struct ScreenedSide {
  const DevicePoints* originals;
  const DevicePoints* screened;
};

/// Sides stay until the search has gone; `left` and `right` may be the same. Lists of candidates
/// take `round_bytes` of the device, and of fewer than a tile needs what it needs. Waits for the
/// device. Throws CudaError, MemoryLimitExceeded or std::bad_alloc.
std::unique_ptr<NeighborSearch> make_screened_search(
    const NeighborQuestion& question, const ScreenFrame& frame, const ScreenedSide& left,
    const ScreenedSide& right, MemoryBudget& budget, HostBudget& host, std::uint64_t round_bytes,
    int multiprocessors, cudaStream_t stream);

}  // namespace gpujoin::cuda
