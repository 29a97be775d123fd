// How many rows a join will return and what reading its tables costs, for the planner. Reads
// statistics, never a table.
#pragma once

#include "pg/executor/operation.h"

namespace gpujoin {

struct JoinEstimate {
  double rows;
  Cost cost;  ///< of reading the tables and starting the join, in the planner's units
};

/// Estimates a join whose arguments are known, all but eps if `eps_known` is false. `row` is what
/// its rows stand for.
JoinEstimate estimate_join(RowKind row, const JoinArguments& arguments, bool eps_known);

}  // namespace gpujoin
