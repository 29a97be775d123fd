// Radii that differ from pair to pair, as in `a.v <-> b.v <= a.r + b.r`, as terms of either row.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpujoin {

/// Terms of a radius, of float8; null: none of that kind. Those of rows raise no error, but their
/// sum may, where the condition would.
struct RadiusTerms {
  PlannerInfo* root;
  Relids sides[2];
  Expr* of_rows[2];
  Expr* of_all;  ///< the same for all pairs
  bool rounds;   ///< the condition adds them in single precision
};

/// Takes the radius apart: at most one term of either side's rows, and one that is the same for
/// all. False: it is no such sum.
bool add_radius(RadiusTerms* terms, Expr* radius);

/// Takes the radius as a term of its own.
bool add_term(RadiusTerms* terms, Expr* term);

/// Sets terms whose sum is no less than the radius, if it is made of numbers of either side by
/// sums, differences, products and quotients with constants, greatest(), least(), CASE, coalesce()
/// and roots of sums of squares.
bool bound_radius(RadiusTerms* terms, Expr* radius);

}  // namespace gpujoin
