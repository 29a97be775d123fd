// What conditions on places on the sky are besides calls of known functions: those of the
// extensions q3c and pgsphere.
#pragma once

#include "pg/planner/similarity_clause.h"

namespace gpujoin {

/// Where the clause tests a haversine against `pow(sin(radians(r) / 2), 2)` of a row, which
/// PostgreSQL has put in the place of a call of q3c_join(), has it test the angle against r.
void take_angle(SimilarityClause* clause);

/// Whether a call asks pgsphere whether a point lies in a circle around another one. Sets the
/// clause's test, values and radius.
bool match_circle(Oid function, List* arguments, SimilarityClause* clause);

}  // namespace gpujoin
