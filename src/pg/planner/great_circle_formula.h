// Distances along the Earth's surface that a query computes by hand: by the haversine formula with
// asin or atan2, or by the law of cosines with acos, in any spelling. They are of columns of
// degrees of two relations, or of one and a place that is the same for all rows.
#pragma once

#include "pg/planner/similarity_clause.h"

namespace gpujoin {

/// Sets the clause's values and test if the expression is the angle between two places. Sets *times
/// to the factor between the expression and the angle as a share of half the circle. The outermost
/// call has to be asin(), acos() or atan2(). The formula is recognised by its values at many random
/// places: its functions are analytic, so two expressions that differ at all differ at almost all
/// places. Returns false for any other expression, and for arithmetic in single precision.
bool match_great_circle(Expr* expression, SimilarityClause* clause, double* times);

}  // namespace gpujoin
