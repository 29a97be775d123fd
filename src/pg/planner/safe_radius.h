// Radii that arithmetic makes of a row's columns and constants, as in `a.v <-> b.v <= b.r * 2`.
// Arithmetic may raise errors, which PostgreSQL raises only where it compares the row with another.
#pragma once

#include "pg/compat.h"

namespace gpujoin {

/// The same float8 for rows whose numbers are of moderate size, so that no step of it overflows,
/// underflows or divides by zero; NaN for others, which the condition itself has to decide about.
/// Null where it is not of sums, differences, products with constants, quotients by constants,
/// casts and magnitudes of what raises no error.
Expr* as_safe_radius(const PlannerInfo* root, Expr* radius);

/// The same for a number that is a term of a sum in its own type, of up to four terms: NaN where it
/// is so large that the sum may overflow, or small enough to lose its last bits. A number that is
/// the same for all rows has to be a constant. Null where it is neither that nor as above.
Expr* as_safe_term(const PlannerInfo* root, Expr* term);

/// The one column that a radius without errors is computed of; null: of others, or it is one.
Expr* number_of_safe_radius(Expr* radius);

/// Such a radius where that number is this one; NaN where it is not known.
double safe_radius_at(Expr* radius, double number);

}  // namespace gpujoin
