// Paths for the node over two inputs, as planning of the steps above joins sees them.
#pragma once

#include "pg/custom_scan.h"

namespace gpujoin {

/// The cheapest path of the relation that is the node's inner join with no condition besides the
/// distance; null when there is none.
CustomPath* find_plain_join(const RelOptInfo* relation);

/// The path that counts the pairs of `join`, or for `grouped` the pairs of each row of the input
/// whose relation is `group`. `having` filters what comes of it.
CustomPath* make_counting_path(const CustomPath* join, bool grouped, const RelOptInfo* group,
                               List* having);

}  // namespace gpujoin
