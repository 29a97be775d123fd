// Clusters of points in cells so small that most points of a cell are neighbours
// (core/cluster.h): a cell with min_points of them has core points only, which are one, and two
// cells are one as soon as one pair is found. So dense places cost what their points do, not what
// their pairs do.
#pragma once

#include "cpu/walk/join_plan.h"
#include "cpu/walk/walk_tools.h"

namespace gpujoin::cpu {

/// Finds the clusters of the plan's points and puts them into the queue. The index is a grid in
/// linear order, of cells as plan_index() has them for clusters.
void find_clusters(const JoinPlan& plan, const WalkTools& tools);

}  // namespace gpujoin::cpu
