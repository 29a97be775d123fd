// Paths for the node over a function, as planning of the steps above sees them.
#pragma once

#include "pg/executor/custom_scan.h"

namespace gpujoin {

/// The path of the relation that is the node over a function, with nothing filtered; null when
/// there is none.
CustomPath* find_plain_call(const RelOptInfo* relation);

/// The path that counts the rows of `call`.
CustomPath* make_counting_call(const CustomPath* call);

}  // namespace gpujoin
