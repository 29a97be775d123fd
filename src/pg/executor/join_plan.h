// What the planner passes to the executor of a join.
#pragma once

#include "core/score.h"
#include "pg/executor/key_plan.h"
#include "pg/executor/sum_plan.h"
#include "pg/types/similarity_test.h"

namespace gpujoin {

/// The first pairs by a score, which are all that is wanted of a join. What stands above sorts
/// them; the join may hand over more than `k`, but leaves out none of the first `k`.
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

/// How a condition compares a key of the left row with one of the right row.
enum class KeyOrder { kNone, kLess, kGreater, kDifferent };

/// A condition `a.key < b.key`, or with > or <>, on keys that are integers. Where both sides are
/// the same points it decides which one of a pair and its reverse is wanted, and the engine can do
/// it.
struct OrderPlan {
  KeyOrder order;
  Oid type;         ///< of both keys
  int left_column;  ///< the keys in the scan tuple, counted from 0
  int right_column;
};

/// The first k right rows of each left row, by their distance.
struct NearestPlan {
  bool wanted;
  bool has_radius;  ///< JoinPlanExpressions::condition leaves out what is farther
  SimilarityTest radius;
  int processes;  ///< that run the plan at once, each with an engine of its own
};

/// What becomes of errors of an operand that the node computes. One that is dropped comes again,
/// and is raised, if a pair asks for the value.
enum class ErrorTrap {
  kNone,            ///< they are raised
  kCatch,           ///< they leave nothing behind, and are dropped
  kSubtransaction,  ///< they are dropped with the subtransaction that they were raised in
};

/// An input of a join.
struct SidePlan {
  AttrNumber value;   ///< the compared value in its rows; 0: the node computes it
  ErrorTrap trap;     ///< for errors of that computation
  ErrorTrap filter;   ///< for errors of the input's conditions, where it is a scan
  AttrNumber radius;  ///< what a row adds to the radius, in it; 0: nothing
};

/// Columns of the scan tuple.
struct ColumnsPlan {
  int count;
  bool* from_left;         ///< [count] which input it comes from
  AttrNumber* attributes;  ///< [count] and its attribute there; 0: the number of matches
};

/// Where pairs are added up, rows are groups of outer rows, with the states of these aggregates in
/// the order of the columns whose attribute is 0.
struct GroupsPlan {
  int sum_count;
  SumPlan* sums;        ///< [sum_count]
  SumsRefusal refusal;  ///< kNone, too, where nobody asked
  bool finishes;        ///< rows have the aggregates' results, and not their states
  bool may_raise;       ///< computing a row's group may raise an error
  int columns;          ///< 0: all rows are one group
  Oid* operators;       ///< [columns] equality, hashable
  Oid* collations;
};

/// What the plan holds beside expressions.
struct JoinPlanData {
  JoinType join_type;
  SimilarityTest test;
  SidePlan left;            ///< the outer input
  SidePlan right;           ///< and the inner one
  bool eps_may_raise;       ///< computing the radius may raise an error
  bool can_drop_eps_error;  ///< that error leaves nothing behind, and may be dropped
  bool rounds_radii;        ///< the condition adds them in single precision
  BoxRule boxes;  ///< of the left value's box and the right one's, by a condition or another
  ColumnsPlan columns;
  bool names_matches;  ///< rows of a semijoin have columns of their match
  bool counts;         ///< rows are not pairs, but numbers of them:
  bool grouped;        ///< one row for each outer row with matches; false: a single total
  OrderPlan order;
  TopPlan top;
  NearestPlan nearest;  ///< columns whose attribute is 0 are JoinPlanExpressions::outputs then
  GroupsPlan groups;
  int key_count;  ///< conditions that engines can decide besides the distance
  KeyPlan* keys;  ///< [key_count]
};

/// Whether pairs are added up. Without aggregates, groups with a pair are rows.
inline bool adds_up(const JoinPlanData& data) {
  return !data.counts && (data.groups.sum_count > 0 || data.groups.columns > 0);
}

/// Whether the first pairs by a score are wanted.
inline bool wants_first(const JoinPlanData& data) { return data.top.k > 0; }

/// Whether the nearest rows of each left row are wanted.
inline bool finds_nearest(const JoinPlanData& data) { return data.nearest.wanted; }

/// As bytes of a constant, which PostgreSQL copies and sends to parallel workers, and back.
Const* encode_join_plan(const JoinPlanData& data);
JoinPlanData decode_join_plan(const Const* encoded);

/// The parts of CustomScan::custom_exprs, in this order: conditions to be evaluated over the scan
/// tuple. The join's own are in the order in which PostgreSQL would evaluate them.
struct JoinPlanExpressions {
  List* order;  ///< what JoinPlanData::order describes; at most one
  List* early;  ///< other conditions, before the engine's
  Expr* condition;
  List* late;   ///< and after it
  List* where;  ///< conditions on the rows of the join, unmatched ones included
  List* guard;  ///< conditions on the outer row alone, which raise no errors
  Expr* eps;
  Expr* left_operand;   ///< null: the outer input has the value
  Expr* right_operand;  ///< likewise
  Expr* score;          ///< that the first pairs are wanted by, for EXPLAIN; or null
  List* groups;         ///< expressions over the outer row: [columns]
  List* sums;           ///< of each aggregate, by encode_sum()
  // Of nearest rows: `early` and `condition` decide which rows there are to choose from, `late`
  // and `where` about those that were chosen.
  Expr* distance;  ///< by which they are
  Expr* limit;     ///< how many
  List* outputs;   ///< columns of the scan tuple that the node computes, in their order
  List* keys;      ///< of each key, by encode_key(): [key_count]
};

/// The expressions of an aggregate as a list in JoinPlanExpressions::sums, and back.
List* encode_sum(const SumExpressions& sum);
SumExpressions decode_sum(const List* encoded);

/// Likewise those of a key.
List* encode_key(const KeyExpressions& key);
KeyExpressions decode_key(const List* encoded);

List* encode_join_expressions(const JoinPlanExpressions& parts);
JoinPlanExpressions decode_join_expressions(const List* encoded);

}  // namespace gpujoin
