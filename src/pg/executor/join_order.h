// A table joined with itself.
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

/// Whether both sides are the same points in the same order, so that half of the work will do; in a
/// file under the same ids, too. Checks once for each reading of the inputs.
bool are_same_points(JoinNode* node);

/// Whether both sides' points, which are the same, have the same keys, each but once, so that the
/// engine can do what the condition on their order does. Sets the ranks. Checks once for each
/// reading of the inputs.
bool find_ranks(JoinNode* node);

}  // namespace gpujoin
