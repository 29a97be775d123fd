// Planning of the node over windows whose functions are PostGIS's for clusters.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpujoin {

/// Puts the node over the paths of windows of the relation that have such functions of points.
void add_window_paths(PlannerInfo* root, RelOptInfo* output);

}  // namespace gpujoin
