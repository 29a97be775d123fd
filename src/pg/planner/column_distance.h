// Distances that a query writes out over columns: `sqrt((a.x - b.x)^2 + (a.y - b.y)^2) <= r`, or
// the squares alone; and bands of single columns, `abs(a.x - b.x) <= r`.
#pragma once

#include "pg/planner/similarity_clause.h"

namespace gpujoin {

/// Sets the clause's values, arrays of what the expression subtracts, its radius and its test, if
/// it is such a distance, for a radius that is the same for all pairs. A row whose bigint or
/// numeric does not fit well in float8 is left to the condition. A radius of numerics is a
/// constant. bind_to_sides() puts the elements in order.
bool match_column_distance(Expr* distance, Expr* radius, SimilarityClause* clause);

/// Likewise for the magnitude of a difference of one column.
bool match_column_difference(Expr* difference, Expr* radius, SimilarityClause* clause);

/// Likewise where conditions compare one number with the other and offsets, of this magnitude or
/// less. False for an offset that is 0 or extreme, and for types that are no numbers.
bool match_column_band(Expr* one, Expr* other, double radius, SimilarityClause* clause);

}  // namespace gpujoin
