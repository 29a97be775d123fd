// How many pairs a similarity condition leaves, for the planner.
#pragma once

#include "pg/similarity_clause.h"

namespace gpujoin {

struct JoinSelectivities {
  Selectivity pairs;  ///< the share of all pairs for which the condition holds
  Selectivity outer;  ///< as outer joins count it: of semi and anti joins, the share of outer rows
                      ///< that have a match
};

/// From the statistics of both columns, or where there are none and the join is large from some of
/// their values. Nothing is looked at where the radius is unknown.
JoinSelectivities estimate_selectivity(PlannerInfo* root, const SimilarityClause& clause);

/// Whether another extension estimates the condition: PostgreSQL itself has but constants for what
/// clauses are made of.
bool is_estimated_by_others(const Expr* condition);

/// The table that a value is a column of; InvalidOid where it is none.
Oid table_of(PlannerInfo* root, const Node* value);

}  // namespace gpujoin
