// The path of a join whose rows are wanted up to a rank.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpujoin {

/// Whether a window or DISTINCT ON may rank rows of the query.
inline bool may_rank(const PlannerInfo* root) {
  return root->parse->hasWindowFuncs || root->parse->hasDistinctOn;
}

/// Offers the node for the join where ranked_clause.h knows the ranks that are wanted.
void add_ranked_path(PlannerInfo* root, RelOptInfo* join, RelOptInfo* outer, RelOptInfo* inner,
                     JoinType type, const JoinPathExtraData* extra);

}  // namespace gpujoin
