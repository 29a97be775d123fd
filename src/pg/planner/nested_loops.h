// PostgreSQL's nested loops that compare all pairs of rows, and when the node is the safer plan.
#pragma once

#include "pg/compat.h"

namespace gpujoin {

/// Removes the nested loops that compare all pairs from the paths of the relation of `node`, a path
/// that joins its rows, where PostgreSQL's estimates alone speak for them: see the architecture
/// page, "Plans that are no traps".
void drop_risky_loops(PlannerInfo* root, const Path* node);

}  // namespace gpujoin
