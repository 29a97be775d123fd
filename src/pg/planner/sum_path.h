// Paths for aggregates over joins whose pairs the node adds up.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpujoin {

/// Offers a path in which the node hands over states of groups that are combined and finished above
/// it, where all of a query's groups are of one input of a join, and all its aggregates are known.
void add_sum_path(PlannerInfo* root, RelOptInfo* input, RelOptInfo* output,
                  const GroupPathExtraData* extra);

}  // namespace gpujoin
