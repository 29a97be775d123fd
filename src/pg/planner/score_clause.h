// Which orders of a query are by a score of pairs: a number that follows from one number of either
// input of a join, or the distance that the join tests.
#pragma once

#include "core/score.h"
#include "pg/planner/similarity_clause.h"

namespace gpujoin {

/// A score as the query has it: function(signs[0] * left, signs[1] * right).
struct ScoreClause {
  Expr* left;  ///< of the outer input alone; null for ScoreFunction::kDistance
  Expr* right;
  ScoreFunction function;
  int signs[2];
};

/// Sets *score if the expression is one of a join of `left` and `right` by `clause`. Its values can
/// be had of every row, also of rows that take part in no pair: they raise no error, but are NULL
/// where arithmetic might leave its range.
bool match_score(PlannerInfo* root, Expr* expression, const SimilarityClause& clause, Relids left,
                 Relids right, ScoreClause* score);

}  // namespace gpujoin
