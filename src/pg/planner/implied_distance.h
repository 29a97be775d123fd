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

/// Returns the distance below sums, differences, products and quotients with constants, if these
/// rise with it, or with `falls` fall as it rises. Returns null for another expression, and for one
/// that rounds away more than a billionth of the distance's unit.
Expr* distance_below(Expr* expression, bool falls);

}  // namespace gpujoin
