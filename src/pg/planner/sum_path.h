// Paths for aggregates over joins whose pairs the node adds up.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpujoin {

/// Offers a path in which the node hands over states of groups that are combined and finished above
/// it, where all of a query's groups are of one input of a join, and all its aggregates are known.
/// Without aggregates the node hands over the groups that have a pair.
void add_sum_path(PlannerInfo* root, RelOptInfo* input, RelOptInfo* output,
                  const GroupPathExtraData* extra);

/// The same for SELECT DISTINCT of columns of one input.
void add_distinct_path(PlannerInfo* root, RelOptInfo* input, RelOptInfo* output);

}  // namespace gpujoin
