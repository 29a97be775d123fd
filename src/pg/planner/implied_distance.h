// The distance condition that a clause implies. `1 - (a.v <=> b.v) > 0.9`, `round(d, 2) < 0.5`,
// `coalesce(ST_DWithin(a.g, b.g, 5), false)` and a haversine formula hold only for pairs within
// some radius. The radius selects pairs, and the clause decides which of them it holds for.
#pragma once

#include "pg/planner/similarity_clause.h"

namespace gpujoin {

/// Sets *clause to a distance condition that holds wherever `condition` does. Its values and its
/// radius may come from anywhere. Sets clause->test.open if `condition` may be false where the
/// distance condition holds. Returns false if no such condition is known.
bool implied_distance(Expr* condition, SimilarityClause* clause);

}  // namespace gpujoin
