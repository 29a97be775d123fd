#include "pg/planner/column_distance.h"

#include "pg/planner/comparison.h"
#include "pg/types/column_tests.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
}

namespace gpujoin {
namespace {

/// The function behind a call, by an operator or not; InvalidOid.
Oid called(Expr* expression, List** arguments) {
  Oid function;
  return as_call(expression, &function, arguments) ? function : InvalidOid;
}

/// A distance on its way from the expression.
struct Distance {
  PlannerInfo* root;
  Relids left, right;
  List* left_values;  ///< what is subtracted, or subtracted from
  List* right_values;
  bool single;  ///< some of its arithmetic is in single precision
  bool exact;   ///< its arithmetic is the engine's, up to the root
};

/// Whether a cast keeps a number, but for what *single says.
bool keeps_number(Oid cast, bool* single) {
  switch (cast) {
    case F_FLOAT8_FLOAT4:
    case F_FLOAT8_INT2:
    case F_FLOAT8_INT4:
    case F_INT4_INT2:
      return true;
    case F_FLOAT4_INT2:
    case F_FLOAT4_INT4:
      *single = true;
      return true;
    default:
      return false;
  }
}

/// The number that casts are made of.
Expr* without_casts(Distance* distance, Expr* value) {
  for (;;) {
    List* arguments = NIL;
    if (IsA(value, RelabelType))
      value = reinterpret_cast<RelabelType*>(value)->arg;
    else if (IsA(value, FuncExpr) && keeps_number(called(value, &arguments), &distance->single))
      value = argument(arguments, 0);
    else
      return value;
  }
}

enum class Arithmetic { kNone, kSum, kDifference, kProduct, kPower, kRoot, kMagnitude };

/// What the function computes; *single: and that it does so in single precision.
Arithmetic arithmetic_of(Oid function, bool* single) {
  switch (function) {
    case F_FLOAT4PL:
      *single = true;
      [[fallthrough]];
    case F_FLOAT8PL:
    case F_FLOAT48PL:
    case F_FLOAT84PL:
    case F_INT2PL:
    case F_INT4PL:
    case F_INT24PL:
    case F_INT42PL:
      return Arithmetic::kSum;
    case F_FLOAT4MI:
      *single = true;
      [[fallthrough]];
    case F_FLOAT8MI:
    case F_FLOAT48MI:
    case F_FLOAT84MI:
    case F_INT2MI:
    case F_INT4MI:
    case F_INT24MI:
    case F_INT42MI:
      return Arithmetic::kDifference;
    case F_FLOAT4MUL:
      *single = true;
      [[fallthrough]];
    case F_FLOAT8MUL:
    case F_FLOAT48MUL:
    case F_FLOAT84MUL:
    case F_INT2MUL:
    case F_INT4MUL:
    case F_INT24MUL:
    case F_INT42MUL:
      return Arithmetic::kProduct;
    case F_DPOW:
    case F_POW_FLOAT8_FLOAT8:
    case F_POWER_FLOAT8_FLOAT8:
      return Arithmetic::kPower;
    case F_DSQRT:
    case F_SQRT_FLOAT8:
      return Arithmetic::kRoot;
    case F_FLOAT4ABS:
    case F_FLOAT8ABS:
    case F_INT2ABS:
    case F_INT4ABS:
    case F_ABS_FLOAT4:
    case F_ABS_FLOAT8:
    case F_ABS_INT2:
    case F_ABS_INT4:
      return Arithmetic::kMagnitude;
    default:
      return Arithmetic::kNone;
  }
}

/// One value of either side less the other.
bool add_difference(Distance* distance, Expr* difference) {
  List* arguments = NIL;
  const Oid function = called(difference, &arguments);
  if (arithmetic_of(function, &distance->single) != Arithmetic::kDifference) return false;
  Expr *one = argument(arguments, 0), *other = argument(arguments, 1);
  if (comes_from(distance->root, one, distance->right)) std::swap(one, other);
  if (!comes_from(distance->root, one, distance->left) ||
      !comes_from(distance->root, other, distance->right))
    return false;
  one = as_float8(one);
  other = as_float8(other);
  if (one == nullptr || other == nullptr) return false;
  distance->left_values = lappend(distance->left_values, one);
  distance->right_values = lappend(distance->right_values, other);
  return true;
}

bool is_two(Expr* value) {
  const Const* const constant = reinterpret_cast<const Const*>(value);
  return IsA(value, Const) && constant->consttype == FLOAT8OID && !constant->constisnull &&
         DatumGetFloat8(constant->constvalue) == 2;
}

/// The square of a difference, or a sum of squares. The engine adds from the left to the right.
bool add_squares(Distance* distance, Expr* expression, bool leftmost) {
  Expr* const value = without_casts(distance, expression);
  List* arguments = NIL;
  const Arithmetic arithmetic = arithmetic_of(called(value, &arguments), &distance->single);
  if (list_length(arguments) != 2) return false;
  Expr *const one = argument(arguments, 0), *const other = argument(arguments, 1);
  switch (arithmetic) {
    case Arithmetic::kSum:
      if (!leftmost) distance->exact = false;
      return add_squares(distance, one, leftmost) && add_squares(distance, other, false);
    case Arithmetic::kPower:
      distance->exact = false;  // a library's power function may round otherwise
      return is_two(other) && add_difference(distance, without_casts(distance, one));
    case Arithmetic::kProduct:
      return equal(one, other) && add_difference(distance, without_casts(distance, one));
    default:
      return false;
  }
}

void set_clause(const Distance& distance, ColumnForm form, SimilarityClause* clause) {
  clause->left = as_array(distance.left_values);
  clause->right = as_array(distance.right_values);
  const ColumnArithmetic arithmetic = distance.single  ? ColumnArithmetic::kSingle
                                      : distance.exact ? ColumnArithmetic::kExact
                                                       : ColumnArithmetic::kDouble;
  clause->test = column_test(arithmetic, form);
}

/// Sets the clause's values and test, if the expression is what its condition compares.
using MatchDistance = bool (*)(Distance* distance, Expr* expression, SimilarityClause* clause);

/// A distance or the square of one.
bool match_squares(Distance* distance, Expr* expression, SimilarityClause* clause) {
  constexpr int kMostColumns = 64;
  Expr* value = without_casts(distance, expression);
  List* arguments = NIL;
  const bool root =
      arithmetic_of(called(value, &arguments), &distance->single) == Arithmetic::kRoot;
  if (root) value = argument(arguments, 0);
  if (!add_squares(distance, value, true) || list_length(distance->left_values) > kMostColumns)
    return false;
  set_clause(*distance, root ? ColumnForm::kRoot : ColumnForm::kSquares, clause);
  return true;
}

/// The difference of one column.
bool match_magnitude(Distance* distance, Expr* expression, SimilarityClause* clause) {
  Expr* const value = without_casts(distance, expression);
  List* arguments = NIL;
  if (arithmetic_of(called(value, &arguments), &distance->single) != Arithmetic::kMagnitude ||
      !add_difference(distance, without_casts(distance, argument(arguments, 0))))
    return false;
  set_clause(*distance, ColumnForm::kMagnitude, clause);
  return true;
}

/// Sets *clause if the condition compares what `match` finds with a radius.
bool match_comparison(PlannerInfo* root, Expr* condition, Relids left, Relids right,
                      MatchDistance match, SimilarityClause* clause) {
  List* arguments = NIL;
  if (!IsA(condition, OpExpr)) return false;
  const Oid function = called(condition, &arguments);
  const Comparison* const comparison = find_comparison(function);
  if (comparison == nullptr) return false;
  *clause = {condition, nullptr, nullptr, nullptr, {}, {}, false};
  clause->eps = as_float8(argument(arguments, comparison->distance_first ? 1 : 0));
  Distance distance = {root, left, right, NIL, NIL, false, true};
  if (clause->eps == nullptr || !is_the_same_for_all_rows(clause->eps) ||
      !match(&distance, argument(arguments, comparison->distance_first ? 0 : 1), clause))
    return false;
  clause->test.strict = comparison->strict;
  return true;
}

}  // namespace

bool match_column_distance(PlannerInfo* root, Expr* condition, Relids left, Relids right,
                           SimilarityClause* clause) {
  return match_comparison(root, condition, left, right, match_squares, clause);
}

bool match_column_band(PlannerInfo* root, Expr* condition, Relids left, Relids right,
                       SimilarityClause* clause) {
  return match_comparison(root, condition, left, right, match_magnitude, clause);
}

}  // namespace gpujoin
