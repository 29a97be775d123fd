// Takes radii apart that differ from pair to pair, as in `a.v <-> b.v <= a.r + b.r`.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpujoin {

/// The terms of a radius, of float8; null if there is none of that kind. Terms of rows raise no
/// error. Their sum may, where the condition would.
struct RadiusTerms {
  PlannerInfo* root;
  Relids sides[2];   ///< relations of the left and the right rows
  Expr* of_rows[2];  ///< term of the left row, and of the right row
  Expr* of_all;      ///< term that is the same for all pairs
  bool rounds;       ///< the condition adds the terms in single precision
};

/// Takes a sum apart into one term for each row and one for all pairs. Returns false if the radius
/// is no such sum.
bool add_radius(RadiusTerms* terms, Expr* radius);

/// Adds the radius as one term. Returns false if it is not of one side, or the side has a term.
bool add_term(RadiusTerms* terms, Expr* term);

/// Sets terms whose sum is an upper bound of the radius. The radius may be made of numbers of both
/// sides by sums, differences, products and quotients with constants, greatest(), least(), CASE,
/// coalesce() and roots of sums of squares. Returns false for other expressions.
bool bound_radius(RadiusTerms* terms, Expr* radius);

}  // namespace gpujoin
