// How many pairs a similarity condition leaves, for the planner.
#pragma once

#include "pg/planner/similarity_clause.h"

namespace gpujoin {

struct JoinSelectivities {
  Selectivity pairs;  ///< the share of all pairs for which the condition holds
  Selectivity outer;  ///< as outer joins count it; for semi and anti joins, the share of outer rows
                      ///< that have a match
};

/// From the statistics of both columns, or where there are none and the join is large from some of
/// their values. Nothing is read where the radius is unknown.
JoinSelectivities estimate_selectivity(PlannerInfo* root, const SimilarityClause& clause);

/// The share of pairs that the node expects of a condition, estimated once for each.
Selectivity share_of_pairs(PlannerInfo* root, const RestrictInfo* info,
                           const SimilarityClause& clause);

/// The share of pairs that an engine finds where rows have radii of their own, `share` where all
/// have the same; negative where the radii of rows are not known.
Selectivity share_of_candidates(PlannerInfo* root, const SimilarityClause& clause,
                                Selectivity share);

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
