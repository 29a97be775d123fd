// Distances of the extension earthdistance, whose functions are written in SQL: PostgreSQL puts
// `sec_to_gc(cube_distance(a, b))` in the place of `earth_distance(a, b)`.
#pragma once

#include "pg/planner/similarity_clause.h"

namespace gpujoin {

/// Whether a call is such a distance. Sets the clause's values and test, and makes its radius, of
/// float8 and in the extension's units, one of the test's; the clause's other radii stay.
///
/// Values that are `ll_to_earth(latitude, longitude)` on both sides become columns of degrees, for
/// which the function need not be called.
bool match_earth_distance(Oid function, List* arguments, SimilarityClause* clause);

/// Sets the clause's values, test and radius if `function` is cube's containment of one place by
/// the box around another one, both of columns: `earth_box(ll_to_earth(..), r) @> ll_to_earth(..)`.
bool match_earth_box(Oid function, List* arguments, SimilarityClause* clause);

}  // namespace gpujoin
