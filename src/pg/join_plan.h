// What planning and execution of a join have to tell each other.
#pragma once

#include "core/score.h"
#include "pg/similarity_clause.h"

namespace gpujoin {

/// The first pairs by a score, which are all that is wanted of a join. What stands above sorts
/// them; the join may hand over more than `k`, but leaves out none of those.
struct TopPlan {
  int k;  ///< 0: all pairs are wanted, in any order
  ScoreFunction function;
  bool lowest_first;
  bool ties;      ///< further keys order pairs of the same score
  int signs[2];   ///< what the values are multiplied with
  Oid type;       ///< of the score
  Oid left_type;  ///< of the values; InvalidOid for ScoreFunction::kDistance, as it has none
  Oid right_type;
  AttrNumber left_score;   ///< the value in the rows of the outer input
  AttrNumber right_score;  ///< and of the inner one
};

/// What plan and execution of a join have to tell each other, beside expressions: a list of
/// integers in CustomScan::custom_private. Columns of the scan tuple are described after it.
struct JoinPlanData {
  JoinType join_type;
  SimilarityTest test;
  AttrNumber left_value;   ///< the compared value in the rows of the outer input
  AttrNumber right_value;  ///< and of the inner one
  int column_count;
  bool* from_left;         ///< [column_count] which input a column of the scan tuple comes from
  AttrNumber* attributes;  ///< [column_count] and its attribute there; 0: the number of matches
  bool counts;             ///< rows are not pairs, but numbers of them:
  bool grouped;            ///< for each outer row that has any, or else one for all
  TopPlan top;
  const char* condition;  ///< in words, for EXPLAIN
  const char* filter;     ///< the join's other conditions, likewise; or ""
  const char* order;      ///< by which the first pairs are wanted, likewise
};

List* encode_join_plan(const JoinPlanData& data);
JoinPlanData decode_join_plan(const List* encoded);

/// The parts of CustomScan::custom_exprs: conditions to be evaluated over the scan tuple.
struct JoinPlanExpressions {
  List* filter;  ///< besides the distance, before rows without a match are told
  Expr* condition;
  Expr* eps;
};

inline List* encode_join_expressions(const JoinPlanExpressions& parts) {
  return list_make3(parts.filter, parts.condition, parts.eps);
}
inline JoinPlanExpressions decode_join_expressions(List* encoded) {
  return {static_cast<List*>(linitial(encoded)), static_cast<Expr*>(lsecond(encoded)),
          static_cast<Expr*>(lthird(encoded))};
}

}  // namespace gpujoin
