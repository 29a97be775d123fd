// Clusters of so few points that comparing them takes less time than a sample, an index of tiles,
// or a thread.
#pragma once

#include <memory>

#include "engine/joins/join.h"
#include "engine/request/request.h"

namespace gpujoin::cpu {

/// Opens a join for Output::kClusters without keys that works within next_batch(), for about a
/// millisecond at most. Null where the points are too many for that, or lie too close together.
/// They outlive the join, which holds three megabytes at most. Throws std::bad_alloc.
std::unique_ptr<Join> open_small_clusters(const JoinRequest& request);

}  // namespace gpujoin::cpu
