// The search for nearest neighbours in a tree of boxes (core/box_tree.h), for any metric; it pays
// in few dimensions.
#pragma once

#include <memory>

#include "cuda/device/memory.h"
#include "cuda/nearest/curve_points.h"
#include "cuda/nearest/neighbor_search.h"

namespace gpujoin::cuda {

/// One side's data as it was uploaded, and what is indexed of it: the same, or for cosine the
/// directions.
struct SearchSide {
  const DevicePoints* originals;
  const DevicePoints* indexed;
  CurvePoints* ordered;
  std::uint32_t points;  ///< finite ones
};

/// Sides stay until the search has gone; `left` and `right` may be the same. `any_direction`: a
/// vector is extreme, see core/cosine.h. Throws CudaError or MemoryLimitExceeded.
std::unique_ptr<NeighborSearch> make_box_search(const NeighborQuestion& question,
                                                const SearchSide& left, const SearchSide& right,
                                                bool any_direction, MemoryBudget& budget,
                                                cudaStream_t stream);

}  // namespace gpujoin::cuda
