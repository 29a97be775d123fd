// Which conditions of a query are similarity joins: `a.v <-> b.v <= e`, `a.box && b.box` and their
// like, for the types of gpujoin, of PostgreSQL and of other extensions. Functions are known by the
// extension that owns them, never by an operator's name alone: two extensions mean different things
// by one symbol.
#pragma once

#include "pg/compat.h"
#include "pg/types/similarity_test.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gpujoin {

/// A condition on two values that holds if and only if their distance is at most, or less than, a
/// radius; or a condition that only values whose boxes meet can fulfil.
struct SimilarityClause {
  Expr* condition;  ///< as the query has it
  Expr* left;       ///< value of the outer side
  Expr* right;      ///< value of the inner side
  Expr* eps;        ///< float8, the same for all pairs
  SimilarityTest test;
  /// What is added to eps: float8 of the outer row and of the inner one; null: nothing.
  Expr* radii[2];
  bool rounds_radii;  ///< the condition adds them in single precision
  /// Further conditions, of RestrictInfo, without which the condition implies no radius.
  List* with = nullptr;
  /// What the radius is computed of, without an error of its own; null: there is no such number.
  Expr* safe_over = nullptr;
};

/// Whether pairs have radii of their own, as in `a.v <-> b.v <= a.r + b.r`.
inline bool has_row_radii(const SimilarityClause& clause) {
  return clause.radii[0] != nullptr || clause.radii[1] != nullptr;
}

/// Whether the clause's values are of `left` and of `right`, in this order from here on. Its radius
/// may be made of columns of either side that raise no error.
bool bind_to_sides(PlannerInfo* root, Relids left, Relids right, SimilarityClause* clause);

/// Whether they are, whatever the radius is made of.
bool are_of_sides(PlannerInfo* root, Relids left, Relids right, SimilarityClause clause);

/// Sets clause's values and test if the expression is the distance of a value of `left` and a value
/// of `right`, in this order from here on.
bool match_distance(PlannerInfo* root, Expr* expression, Relids left, Relids right,
                    SimilarityClause* clause);

/// Whether rows are sorted by a distance, or a number of bits, the nearest first.
bool is_nearest_first(const SortGroupClause& key);

/// Whether the value is neither a row's nor another one at each evaluation.
bool is_the_same_for_all_rows(Expr* value);

/// Returns true if the expression has a value of an outer query's row, or of an InitPlan.
bool uses_outer_value(Node* expression);

/// Returns true if the value comes from rows of these relations alone and is the same at each
/// evaluation. Without relations, it must come from no row.
bool comes_from(PlannerInfo* root, Expr* value, Relids relations);

/// Sets *radius if the condition, of rows of `left` and of `right`, is a radius of the distance,
/// whether it is the same for all pairs or not. Rows without a distance do not fulfil it, nor do
/// finite ones whose distance is NaN.
bool match_radius(PlannerInfo* root, Expr* condition, const SimilarityClause& distance, Relids left,
                  Relids right, SimilarityClause* radius);

/// Whether the expression is the distance that the clause tests.
bool is_distance_of(Expr* expression, const SimilarityClause& clause);

/// Whether it is, in the engine's own arithmetic.
bool measures_exactly(Expr* expression, const SimilarityClause& clause);

}  // namespace gpujoin
