// Conditions on PostgreSQL's own points, circles, boxes and polygons: `p <@ circle`,
// `circle && circle`, `p <@ box`, `polygon @> p`, `polygon && polygon`.
#pragma once

#include "pg/planner/similarity_clause.h"

namespace gpujoin {

/// Sets the clause's values, radius and test where a call tests such values: circles by the
/// distance of their middles, boxes and polygons by their boxes.
bool match_geometric(Oid function, List* arguments, SimilarityClause* clause);

}  // namespace gpujoin
