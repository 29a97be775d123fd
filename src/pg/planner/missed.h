// Lists the distances of a planned query: which the node serves, and why not the others.
#pragma once

#include "pg/compat.h"
#include "pg/planner/refusal.h"

namespace gpujoin {

/// A distance between rows of two relations that a planned query computes.
struct SeenDistance {
  const char* relations;  ///< as the query names them, between commas
  const char* condition;  ///< in SQL, or the distance where no condition bounds it
  bool served;
  bool searched;    ///< by searches of a table
  Refusal refusal;  ///< where it is not served
  double pairs;     ///< of rows that the relations' own conditions leave
};

/// Returns the distances over at least `pairs` pairs, as a list of SeenDistance*. `after`: result
/// of plannings_begun() before the query was planned. Call before the planner's memory is freed.
List* distances_seen(std::uint64_t after, double pairs);

/// Counts queries that compare many pairs without the node, and reports them as gpujoin.warn_missed
/// has it.
void install_miss_reports();

}  // namespace gpujoin
