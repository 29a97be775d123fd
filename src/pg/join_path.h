// Paths for the node over two inputs, as planning of the steps above joins sees them.
#pragma once

#include "pg/custom_scan.h"

namespace gpujoin {

/// The cheapest path of the relation that is the node's inner join; null when there is none.
CustomPath* find_inner_join(const RelOptInfo* relation);

/// Whether the join has no condition besides the distance.
bool is_plain_join(const CustomPath* join);

/// The path that counts the pairs of `join`, or for `grouped` the pairs of each row of the input
/// whose relation is `group`. `having` filters what comes of it.
CustomPath* make_counting_path(const CustomPath* join, bool grouped, const RelOptInfo* group,
                               List* having);

/// The path that hands over no more than `limit` pairs, nearest first, where `distance` is what the
/// join tests and the engine's distances grow as it does; null where it is not.
CustomPath* make_nearest_path(const CustomPath* join, Expr* distance, int limit);

}  // namespace gpujoin
