// What the planner passes to the executor of a join whose further conditions are keys of the index:
// equalities of values of both rows, bands that the difference of both rows' values has to lie in,
// and intervals of both rows that have to overlap.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "catalog/pg_type.h"
}

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

/// The type of a range's bounds; InvalidOid: the type is no range, or one of an extension.
inline Oid element_of_range(Oid type) {
  switch (type) {
    case INT4RANGEOID:
      return INT4OID;
    case INT8RANGEOID:
      return INT8OID;
    case NUMRANGEOID:
      return NUMERICOID;
    case DATERANGEOID:
      return DATEOID;
    case TSRANGEOID:
      return TIMESTAMPOID;
    case TSTZRANGEOID:
      return TIMESTAMPTZOID;
    default:
      return InvalidOid;
  }
}

/// A range that the condition makes of two values, as tsrange(x, y) does. NULL makes no end.
struct MadeRange {
  bool is_made;
  bool has_low, has_high;  ///< it contains its ends
};

/// An interval's values are its ends: of ranges, which have both, of one value that is both, or of
/// two. Its bounds, none of ranges, are of the left row's low end less the right row's high one,
/// kMost, and of the left row's high end less the right row's low one, kLeast.
struct KeyPlan {
  KeyNumbers numbers;
  bool is_interval;
  Oid types[2];       ///< of the left value and of the right one; of an interval the low ends
  Oid high_types[2];  ///< of an interval
  MadeRange ranges[2];
  Oid equality;   ///< of kRanks: the operator, which PostgreSQL can hash
  Oid collation;  ///< likewise
  int bound_count;
  KeyBound bounds[kMostBounds];  ///< of a band or of an interval
};

/// The engine's columns of the key.
inline int columns_of(const KeyPlan& plan) { return plan.is_interval ? 2 : 1; }

/// The expressions of a key, over the scan tuple.
struct KeyExpressions {
  Expr* values[2];       ///< of the left row and of the right one; of an interval the low ends
  Expr* high_values[2];  ///< of an interval; null: it is none
  List* offsets;         ///< of each bound; null: 0
  List* conditions;      ///< those that the key stands for
};

}  // namespace gpujoin
