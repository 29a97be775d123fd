// What planning and execution of a join have to tell each other.
#pragma once

#include "pg/similarity_clause.h"

namespace gpujoin {

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
  int nearest;             ///< only so many pairs are wanted, nearest first; 0: all, in any order
  const char* condition;   ///< in words, for EXPLAIN
  const char* filter;      ///< the join's other conditions, likewise; or ""
};

List* encode_join_plan(const JoinPlanData& data);
JoinPlanData decode_join_plan(const List* encoded);

/// The parts of CustomScan::custom_exprs: conditions to be evaluated over the scan tuple.
struct JoinPlanExpressions {
  List* filter;  ///< besides the distance, before rows without a match are told
  Expr* condition;
  Expr* eps;
  Expr* distance;  ///< null unless JoinPlanData::nearest
};

inline List* encode_join_expressions(const JoinPlanExpressions& parts) {
  return list_make4(parts.filter, parts.condition, parts.eps, parts.distance);
}
inline JoinPlanExpressions decode_join_expressions(List* encoded) {
  return {static_cast<List*>(linitial(encoded)), static_cast<Expr*>(lsecond(encoded)),
          static_cast<Expr*>(lthird(encoded)), static_cast<Expr*>(lfourth(encoded))};
}

}  // namespace gpujoin
