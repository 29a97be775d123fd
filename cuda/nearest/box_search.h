// The search for nearest neighbours in a tree of boxes (core/box_tree.h), for any metric; it pays
// in few dimensions.
#pragma once

#include <memory>

#include "cuda/device/memory.h"
#include "cuda/nearest/nearest_side.h"
#include "cuda/nearest/neighbor_search.h"

namespace gpujoin::cuda {

/// Columns that the points of a tree have, which kernels are compiled for; where there are too
/// many, as many as the data.
std::uint32_t tree_columns(Metric metric, std::uint32_t dims, std::uint32_t k);

/// Sides with ordered points, the right one with a tree. They stay until the search has gone, and
/// may be the same. `any_direction`: a vector is extreme, see core/cosine.h. Throws CudaError or
/// MemoryLimitExceeded.
std::unique_ptr<NeighborSearch> make_box_search(const NeighborQuestion& question,
                                                const NearestSide& left, const NearestSide& right,
                                                bool any_direction, MemoryBudget& budget,
                                                cudaStream_t stream);

}  // namespace gpujoin::cuda
