// What the planner passes to the executor of a join whose further conditions are keys of the index:
// equalities of values of both rows, and bands that the difference of both rows' values has to lie
// in.
#pragma once

#include "pg/compat.h"

namespace gpujoin {

inline constexpr int kMostBounds = 4;

/// What the values of a key are to the engine.
enum class KeyNumbers {
  kRanks,     ///< of equal values: the key is an equality
  kIntegers,  ///< integers, dates, timestamps: differences are exact
  kReals,
};

/// A bound of x - y, where x is the left row's value and y the right one's.
enum class BoundForm { kMost, kLeast, kApart };  ///< kApart: of |x - y|, at most

/// A condition of a band: the difference compared with an expression that is the same for all
/// pairs.
struct KeyBound {
  BoundForm form;
  bool strict;
  bool negated;  ///< the bound is minus the expression
  bool summed;   ///< the condition adds it to a value, which rounds otherwise than a difference
  Oid type;      ///< of the expression; InvalidOid: there is none, the bound is 0
};

struct KeyPlan {
  KeyNumbers numbers;
  Oid types[2];   ///< of the left value and of the right one
  Oid equality;   ///< of kRanks: the operator, which PostgreSQL can hash
  Oid collation;  ///< likewise
  int bound_count;
  KeyBound bounds[kMostBounds];  ///< of a band
};

/// The expressions of a key, over the scan tuple.
struct KeyExpressions {
  Expr* values[2];   ///< of the left row and of the right one
  List* offsets;     ///< of each bound; null: 0
  List* conditions;  ///< those that the key stands for
};

}  // namespace gpujoin
