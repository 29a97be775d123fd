// Which further conditions of a similarity join are keys of the engine's index: `a.city = b.city`,
// `a.t BETWEEN b.t - interval '10 min' AND b.t + interval '10 min'`, `abs(a.x - b.x) <= 5`,
// `a.during && b.during`, `a.t_from <= b.t_to AND b.t_from <= a.t_to`.
#pragma once

#include "pg/executor/key_plan.h"
#include "pg/planner/similarity_clause.h"

namespace gpujoin {

struct KeyClause {
  KeyPlan plan;
  KeyExpressions expressions;
};

/// The keys among the conditions, of RestrictInfo, of a join of two sides with these relations: of
/// KeyClause, as many as engines know. Their values raise no errors.
List* match_keys(PlannerInfo* root, const SimilarityClause& clause, const List* conditions,
                 Relids left, Relids right);

/// Whether the condition is one that a key stands for.
bool is_of_key(const List* keys, const Expr* condition);

}  // namespace gpujoin
