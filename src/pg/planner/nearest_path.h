// Paths for the node over two inputs where it looks for nearest rows.
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

/// Has the nodes among the paths of what is aggregated emit the distances that aggregates are of:
/// PostgreSQL finds them in their rows.
void emit_distances(RelOptInfo* input);

}  // namespace gpujoin
