// Joins of data that does not fit on a device, or that lies in a file: in parts, each of which is a
// join on the device (engine/joins/partitioned_join.h). Sides stay there as long as their parts do.
#pragma once

#include <memory>

#include "cuda/device/device_context.h"
#include "engine/joins/join.h"
#include "engine/request/request.h"

namespace gpujoin::cuda {

/// Whether the points of a range join are too many to be on the device at once, or lie in a file.
/// Where they fit without what is kept for other joins, this goes. Throws CudaError.
bool needs_parts(const JoinRequest& request, DeviceContext& context);

/// Opens a join of points, or of boxes in a file. Throws what RangeJoin's methods throw, and so do
/// the join's methods.
std::unique_ptr<Join> open_in_parts(const JoinRequest& request,
                                    std::shared_ptr<JoinResources> resources);

/// Opens a join of points for nearest neighbours. Throws as above.
std::unique_ptr<Join> open_nearest_in_parts(const JoinRequest& request,
                                            std::shared_ptr<JoinResources> resources);

/// Opens a join of clusters of points; `joins` opens those that it is made of. Throws as above, and
/// MemoryLimitExceeded where there is room for no rows.
std::unique_ptr<Join> open_clusters_in_parts(const JoinRequest& request,
                                             const DeviceContext& context, OpenJoin joins);

}  // namespace gpujoin::cuda
