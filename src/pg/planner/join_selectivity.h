// How many pairs a similarity condition leaves, for the planner.
#pragma once

#include "pg/planner/similarity_clause.h"
#include "pg/reading/column_sample.h"

namespace gpujoin {

struct JoinSelectivities {
  Selectivity pairs;  ///< the share of all pairs for which the condition holds
  Selectivity outer;  ///< as outer joins count it; for semi and anti joins, the share of outer rows
                      ///< that have a match
};

/// Returns the share of pairs that the node expects of a condition, by the statistics of both
/// columns. Without statistics, and if the join is large, values of both tables are sampled.
/// Nothing is read if the radius is unknown. Each condition is estimated once.
PairShare share_of_pairs(PlannerInfo* root, const Expr* condition, const SimilarityClause& clause);

/// Returns the selectivities of a condition by share_of_pairs().
JoinSelectivities estimate_selectivity(PlannerInfo* root, const Expr* condition,
                                       const SimilarityClause& clause);

/// Returns the share of pairs that an engine finds where rows have radii of their own, `share`
/// where all have the same; unknown where the radii of rows are not known.
PairShare share_of_candidates(PlannerInfo* root, const SimilarityClause& clause, PairShare share);

/// The share of rows in which a column of the value is NULL, as far as statistics know, and no
/// condition on its table rejects it.
double share_of_nulls(PlannerInfo* root, Expr* value);

/// Whether statistics keep values of all that the condition compares.
bool has_statistics(PlannerInfo* root, const SimilarityClause& clause);

/// Sets the condition's selectivities for all plans, unless another extension estimates it.
/// PostgreSQL itself has only constants for these operators and functions.
void set_selectivities(PlannerInfo* root, RestrictInfo* info, const SimilarityClause& clause);

/// The table that a value is a column of; InvalidOid where it is none.
Oid table_of(PlannerInfo* root, const Node* value);

}  // namespace gpujoin
