#include "pg/planner/column_distance.h"

#include "pg/planner/comparison.h"
#include "pg/types/column_tests.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
}

namespace gpujoin {
namespace {

/// A distance on its way from the expression.
struct Distance {
  List* left_values;  ///< what is subtracted from
  List* right_values;
  bool single;          ///< some of its arithmetic is in single precision
  bool exact;           ///< its arithmetic is the engine's, up to the root
  bool numeric;         ///< some of it is of numerics
  bool held;            ///< some numbers may be none of float8
  double most_numeric;  ///< magnitude of numerics that become float8; 0: none does
};

/// Returns what a call computes, and sets its arguments. Notes where it is in single precision.
Arithmetic arithmetic_of(Distance* distance, Expr* expression, List** arguments) {
  const Arithmetic arithmetic = as_arithmetic(expression, arguments);
  if (arithmetic != Arithmetic::kNone && exprType(reinterpret_cast<Node*>(expression)) == FLOAT4OID)
    distance->single = true;
  return arithmetic;
}

/// The number that casts are made of.
Expr* without_casts(Distance* distance, Expr* value) {
  for (List* arguments = NIL;;) {
    if (IsA(value, RelabelType))
      value = reinterpret_cast<RelabelType*>(value)->arg;
    else if (arithmetic_of(distance, value, &arguments) == Arithmetic::kCast)
      value = argument(arguments, 0);
    else
      return value;
  }
}

Expr* compare(Oid function, Expr* one, Expr* other) {
  return make_call(function, BOOLOID, list_make2(one, other));
}

/// The number as float8 where the test holds, else NaN, but NULL where it is NULL.
Expr* held_if(Expr* test, Expr* number, Expr* value) {
  Expr* const nothing = reinterpret_cast<Expr*>(makeNullConst(FLOAT8OID, -1, InvalidOid));
  return make_case(list_make2(make_when(make_null_test(number), nothing), make_when(test, value)),
                   float8_constant(get_float8_nan()));
}

/// An int8 that float8 holds.
Expr* held_int8(Expr* value) {
  Expr* const number = cast_by(F_FLOAT8_INT8, value);
  return held_if(compare(F_FLOAT8LE, cast_by(F_FLOAT8ABS, number), float8_constant(0x1p52)), value,
                 number);
}

/// A numeric of moderate size and not too many digits, whose cast raises no error.
Expr* held_numeric(Expr* value, double most) {
  constexpr int kMostDigits = 100;  // after the point
  const auto int4 = [](int number) {
    return reinterpret_cast<Expr*>(makeConst(INT4OID, -1, InvalidOid, sizeof(std::int32_t),
                                             Int32GetDatum(number), false, true));
  };
  Expr* const limit = make_call(F_NUMERIC_FLOAT8, NUMERICOID, list_make1(float8_constant(most)));
  Expr* const size = make_call(F_NUMERIC_ABS, NUMERICOID, list_make1(value));
  Expr* const digits = make_call(F_SCALE, INT4OID, list_make1(value));
  return held_if(makeBoolExpr(AND_EXPR,
                              list_make2(compare(F_NUMERIC_LE, size, limit),
                                         compare(F_INT4LE, digits, int4(kMostDigits))),
                              -1),
                 value, cast_by(F_FLOAT8_NUMERIC, value));
}

/// A value as float8, or null.
Expr* as_coordinate(Distance* distance, Expr* value) {
  switch (exprType(reinterpret_cast<Node*>(value))) {
    case INT8OID:
      distance->exact = false;
      distance->held = true;
      return held_int8(value);
    case NUMERICOID:
      distance->numeric = distance->held = true;
      return distance->most_numeric > 0 ? held_numeric(value, distance->most_numeric) : nullptr;
    default:
      return as_float8(value);
  }
}

/// Whether the other number is of a row, too, or the number is a column.
bool can_be_compared(Expr* number, Expr* other) {
  Distance unused = {};
  return contain_var_clause(reinterpret_cast<Node*>(other)) ||
         IsA(without_casts(&unused, number), Var);
}

/// One row's value less another's, or a column and a number that is the same for all rows.
bool add_difference(Distance* distance, Expr* difference) {
  List* arguments = NIL;
  if (arithmetic_of(distance, difference, &arguments) != Arithmetic::kDifference ||
      !can_be_compared(argument(arguments, 0), argument(arguments, 1)) ||
      !can_be_compared(argument(arguments, 1), argument(arguments, 0)))
    return false;
  Expr* const one = as_coordinate(distance, argument(arguments, 0));
  Expr* const other = as_coordinate(distance, argument(arguments, 1));
  if (one == nullptr || other == nullptr) return false;
  distance->left_values = lappend(distance->left_values, one);
  distance->right_values = lappend(distance->right_values, other);
  return true;
}

bool is_two(Expr* value) {
  const Const* const constant = reinterpret_cast<const Const*>(value);
  if (!IsA(value, Const) || constant->constisnull) return false;
  if (constant->consttype == NUMERICOID)
    return DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, constant->constvalue)) ==
           2;
  return constant->consttype == FLOAT8OID && DatumGetFloat8(constant->constvalue) == 2;
}

/// The square of a difference, or a sum of squares. The engine adds from the left to the right.
bool add_squares(Distance* distance, Expr* expression, bool leftmost) {
  Expr* const value = without_casts(distance, expression);
  List* arguments = NIL;
  const Arithmetic arithmetic = arithmetic_of(distance, value, &arguments);
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

/// The magnitude of a difference, or a sum of these.
bool add_magnitudes(Distance* distance, Expr* expression, bool leftmost) {
  Expr* const value = without_casts(distance, expression);
  List* arguments = NIL;
  switch (arithmetic_of(distance, value, &arguments)) {
    case Arithmetic::kSum:
      if (!leftmost) distance->exact = false;
      return add_magnitudes(distance, argument(arguments, 0), leftmost) &&
             add_magnitudes(distance, argument(arguments, 1), false);
    case Arithmetic::kMagnitude:
      return add_difference(distance, without_casts(distance, argument(arguments, 0)));
    default:
      return false;
  }
}

void set_clause(const Distance& distance, ColumnForm form, SimilarityClause* clause) {
  clause->left = as_array(distance.left_values);
  clause->right = as_array(distance.right_values);
  const ColumnArithmetic arithmetic = distance.numeric  ? ColumnArithmetic::kNumeric
                                      : distance.single ? ColumnArithmetic::kSingle
                                      : distance.exact  ? ColumnArithmetic::kExact
                                                        : ColumnArithmetic::kDouble;
  clause->test = column_test(arithmetic, form, distance.held);
}

/// A distance, the square of one, or the difference of one column.
bool match_distance(Distance* distance, Expr* expression, SimilarityClause* clause) {
  constexpr int kMostColumns = 64;
  Expr* const value = without_casts(distance, expression);
  List* arguments = NIL;
  ColumnForm form = ColumnForm::kSquares;
  bool known = false;
  switch (arithmetic_of(distance, value, &arguments)) {
    case Arithmetic::kMagnitude:
      form = ColumnForm::kMagnitude;
      known = add_difference(distance, without_casts(distance, argument(arguments, 0)));
      break;
    case Arithmetic::kRoot:
      form = ColumnForm::kRoot;
      known = add_squares(distance, argument(arguments, 0), true);
      break;
    default: {
      const Distance begun = *distance;
      known = add_squares(distance, value, true);
      if (known) break;
      *distance = begun;
      form = ColumnForm::kSum;
      known = add_magnitudes(distance, value, true);
    }
  }
  if (!known || list_length(distance->left_values) > kMostColumns) return false;
  set_clause(*distance, form, clause);
  return true;
}

Expr* fold(Expr* value) {
  return reinterpret_cast<Expr*>(eval_const_expressions(nullptr, reinterpret_cast<Node*>(value)));
}

/// Distance::most_numeric for a radius, which may be one of squares.
double most_numeric(const Expr* radius) {
  if (radius == nullptr || !IsA(radius, Const)) return 0;
  const double eps = DatumGetFloat8(reinterpret_cast<const Const*>(radius)->constvalue);
  const bool moderate =
      eps > 1e-30 && eps < 1e30 && !reinterpret_cast<const Const*>(radius)->constisnull;
  return moderate ? kMostNumeric * std::fmin(eps, std::sqrt(eps)) : 0;
}

/// A radius as float8, or null; numerics are constants, for others might raise an error.
Expr* radius_of(Expr* radius) {
  const Const* const constant = reinterpret_cast<const Const*>(radius);
  if (exprType(reinterpret_cast<Node*>(radius)) == INT8OID)
    return IsA(radius, Const) ? fold(cast_by(F_FLOAT8_INT8, radius)) : nullptr;
  if (exprType(reinterpret_cast<Node*>(radius)) != NUMERICOID) return as_float8(radius);
  if (!IsA(radius, Const) || constant->constisnull) return nullptr;
  return float8_constant(
      DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, constant->constvalue)));
}

}  // namespace

namespace {

/// Begins a distance within the radius. False: the radius is none for columns.
bool begin(Expr* radius, Distance* distance, SimilarityClause* clause) {
  clause->eps = radius_of(radius);
  if (clause->eps == nullptr || !is_the_same_for_all_rows(clause->eps)) return false;
  *distance = {NIL, NIL, false, true, false, false, most_numeric(clause->eps)};
  return true;
}

}  // namespace

bool match_column_distance(Expr* expression, Expr* radius, SimilarityClause* clause) {
  Distance distance;
  return begin(radius, &distance, clause) && match_distance(&distance, expression, clause);
}

bool match_column_difference(Expr* expression, Expr* radius, SimilarityClause* clause) {
  Distance distance;
  if (!begin(radius, &distance, clause) ||
      !add_difference(&distance, without_casts(&distance, expression)))
    return false;
  set_clause(distance, ColumnForm::kMagnitude, clause);
  return true;
}

bool match_column_band(Expr* one, Expr* other, double radius, SimilarityClause* clause) {
  // A sum of a value and the offset is rounded by a share of the value.
  constexpr double kMostTimes = 1e9, kSlack = 1e-6;
  if (!(radius > 1e-30 && radius < 1e30)) return false;
  Expr* values[2] = {one, other};
  for (Expr*& value : values) {
    Distance distance = {NIL, NIL, false, false, false, true, kMostTimes * radius};
    Expr* number = as_coordinate(&distance, value);
    if (number == nullptr) return false;
    if (number == value || !IsA(number, CaseExpr))
      number = held_if(
          compare(F_FLOAT8LE, cast_by(F_FLOAT8ABS, number), float8_constant(kMostTimes * radius)),
          value, number);
    value = number;
  }
  clause->left = as_array(list_make1(values[0]));
  clause->right = as_array(list_make1(values[1]));
  clause->eps = float8_constant(radius * (1 + kSlack));
  clause->test = column_test(ColumnArithmetic::kDouble, ColumnForm::kMagnitude, true);
  clause->test.open = true;
  return true;
}

}  // namespace gpujoin
