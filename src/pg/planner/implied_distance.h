// The distance condition that a clause implies. `1 - (a.v <=> b.v) > 0.9`, `round(d, 2) < 0.5`,
// `coalesce(ST_DWithin(a.g, b.g, 5), false)` and a haversine formula hold only for pairs within
// some radius. The radius selects pairs, and the clause decides which of them it holds for.
#pragma once

#include "pg/planner/similarity_clause.h"

namespace gpujoin {

/// Sets *clause to a distance condition that holds wherever `condition` does, whatever its values
/// and its radius come from. Where it is no more than that, clause->test.open. False: none is
/// known.
bool implied_distance(Expr* condition, SimilarityClause* clause);

}  // namespace gpujoin
