// Which expressions above a join of nearest rows compute the distance again that the node knows: it
// emits the distance as a column in their place.
#pragma once

#include "pg/planner/nearest_clause.h"

namespace gpujoin {

/// The calls in what the query shows, groups by or adds up that are the clause's distance of a row
/// of the join: by the same code, of the same values in the same order. NIL where others stand
/// between the join and them.
List* distances_above(const PlannerInfo* root, const RelOptInfo* join, const RelOptInfo* inner,
                      const NearestClause& clause);

}  // namespace gpujoin
