// Paths of the node that look for nearest rows.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "optimizer/paths.h"
}

namespace gpujoin {

/// Offers the node beside PostgreSQL's own nested loop, where the inner input is a LATERAL subquery
/// that sorts the rows of a table by distance and keeps the first few. Parallel workers may share
/// the outer rows.
void add_nearest_path(PlannerInfo* root, RelOptInfo* join, RelOptInfo* outer, RelOptInfo* inner,
                      JoinType type, const JoinPathExtraData* extra);

/// Whether a window or DISTINCT ON may rank rows of the query.
inline bool may_rank(const PlannerInfo* root) {
  return root->parse->hasWindowFuncs || root->parse->hasDistinctOn;
}

/// Offers the node for the join where ranked_clause.h knows the ranks that are wanted.
void add_ranked_path(PlannerInfo* root, RelOptInfo* join, RelOptInfo* outer, RelOptInfo* inner,
                     JoinType type, const JoinPathExtraData* extra);

/// Has the nodes among the paths of what is aggregated emit the distances that aggregates are of:
/// PostgreSQL finds them in their rows.
void emit_distances(RelOptInfo* input);

}  // namespace gpujoin
