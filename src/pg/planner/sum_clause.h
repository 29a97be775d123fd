// Which aggregates over a join the node adds up without making its pairs.
#pragma once

#include "pg/executor/sum_plan.h"
#include "pg/planner/similarity_clause.h"

namespace gpujoin {

/// An aggregate as the executor wants it.
struct SumClause {
  Aggref* aggregate;  ///< as the query has it
  SumPlan plan;
  SumExpressions expressions;
};

/// A join whose pairs are added up for rows of `left`.
struct SumJoin {
  const SimilarityClause* clause;
  Relids left, right;
  bool groups_are_rows;  ///< each left row is a group of its own
};

/// Sets *sum if the node knows the aggregate, and its argument and filter can be had of rows alone,
/// or are arithmetic over both rows and the distance.
bool match_sum(PlannerInfo* root, const Aggref* aggregate, const SumJoin& join, SumClause* sum);

/// The aggregate as the node hands its state over.
Aggref* partial_of(const Aggref* aggregate);

/// Whether the expression is of rows of these relations, or of none, and is the same at each
/// evaluation.
bool is_of(PlannerInfo* root, Node* expression, Relids relations);

/// Whether parts of the expression are computed below an outer join.
bool has_placeholders(Node* expression);

}  // namespace gpujoin
