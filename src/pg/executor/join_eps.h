// The radius that is the same for all pairs.
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

/// Computes the radius, which is the same for all pairs, as far as some pair needs it. Returns
/// false if no pair does; else sets *eps and *is_null.
bool compute_eps(JoinNode* node, double* eps, bool* is_null);

}  // namespace gpujoin
