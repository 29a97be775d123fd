// What the planner passes to the executor of a join whose pairs are added up: the aggregates, of
// which the node hands over transition states, and what each is of.
#pragma once

#include "core/pair_value.h"
#include "pg/compat.h"

namespace gpujoin {

/// The transition state of an aggregate, as PostgreSQL's parallel plans hand it over.
enum class SumState {
  kCount,
  kRows,         ///< left rows that have pairs: count(DISTINCT key), which has no such state
  kInt8,         ///< sum(int4)
  kInt8Average,  ///< {count, sum}: avg(int4)
  kInt8Sums,     ///< serialised: sum(int8) and avg(int8)
  kNumericSums,  ///< serialised: sum(numeric) and avg(numeric)
  kIntSquares,   ///< serialised: variance(int4) and its like
  kFloat4,       ///< sum(float4)
  kFloat8,
  kFloatAverage,    ///< {count, sum, sum of squared deviations}: avg(float8)
  kFloatDeviation,  ///< the same, where the last number matters
  kLeast,
  kMost,
  kAnd,
  kOr,
};

/// Why aggregates over a join get its pairs.
enum class SumsRefusal { kNone, kGroupingSets, kConditions, kGroups, kAggregates };

/// What the argument of an aggregate, or its filter, depends on.
enum class SumOf {
  kNothing,
  kLeft,
  kRight,
  kPair,
};

/// How integers or numerics of both rows of a pair become one, exactly.
enum class Combination { kNone, kTimes, kPlus, kMinus };

/// An aggregate: the arrays are of its program, of SumOf::kPair, or the first two of them of the
/// two numbers that are combined.
struct SumPlan {
  SumState state;
  SumOf of;
  SumOf filter;
  Oid type;   ///< of the argument
  int scale;  ///< of a numeric argument
  int step_count;
  ValueStep steps[kMostValueSteps];
  int leaves[kMostValueSteps];  ///< of kLeft and kRight: which of SumExpressions::leaves
  int leaf_count;
  bool leaf_is_left[kMostValueSteps];
  Combination combination;  ///< of leaves 0 and 1; kNone: a program is computed
  Oid leaf_types[2];        ///< of these
  int leaf_scales[2];       ///< of numerics
};

/// The expressions of an aggregate, over the scan tuple.
struct SumExpressions {
  Expr* argument;  ///< null: of count(*)
  Expr* filter;    ///< null: none
  List* leaves;    ///< numbers of one row that are combined, or that a program begins with: float8
                   ///< or float4
};

}  // namespace gpujoin
