#include "pg/planner/solved_bound.h"

#include "pg/planner/comparison.h"
#include "pg/types/number_datum.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
}

namespace gpujoin {
namespace {

/// Sets *number to a finite constant of a number type.
bool read_number(const Expr* value, double* number) {
  const Const* const constant = reinterpret_cast<const Const*>(value);
  if (!IsA(value, Const) || constant->constisnull) return false;
  const Oid type = constant->consttype;
  if (!is_integer_type(type) && type != FLOAT4OID && type != FLOAT8OID && type != NUMERICOID)
    return false;
  *number = number_of(type, constant->constvalue);
  return std::isfinite(*number);
}

/// A bound of an expression, from above or from below, and by how much it may be wrong: each step
/// of the arithmetic rounds.
struct Bound {
  double limit;
  double error;
  bool upper;

  void add(double number) {
    error += kRounding * (std::fabs(limit) + std::fabs(number));
    limit += number;
  }
  void scale(double times) {
    limit *= times;
    error = error * std::fabs(times) + kRounding * std::fabs(limit);
    if (times < 0) upper = !upper;
  }

  /// Exceeds the rounding of float8, and that of a cast between float8 and numeric.
  static constexpr double kRounding = 1e-13;
};

/// A number as another type, which keeps 15 digits of it.
bool is_cast(const Expr* expression) {
  if (!IsA(expression, FuncExpr)) return false;
  switch (reinterpret_cast<const FuncExpr*>(expression)->funcid) {
    case F_NUMERIC_FLOAT8:
    case F_FLOAT8_NUMERIC:
      return true;
    default:
      return false;
  }
}

/// Takes the outermost step from the expression: from here on the bound is one of its operand.
bool take_call(Arithmetic arithmetic, List* arguments, Expr** expression, Bound* bound) {
  Expr* const one = argument(arguments, 0);
  Expr* const other = list_length(arguments) == 2 ? argument(arguments, 1) : nullptr;
  double number = 0;
  const bool is_first = other != nullptr && read_number(one, &number);
  if (other != nullptr && !is_first && !read_number(other, &number)) return false;
  switch (arithmetic) {
    case Arithmetic::kSum:
      bound->add(-number);
      break;
    case Arithmetic::kDifference:
      if (is_first) bound->scale(-1);
      bound->add(number);
      break;
    case Arithmetic::kProduct:
      if (number == 0) return false;
      bound->scale(1 / number);
      break;
    case Arithmetic::kQuotient:
      if (is_first || number == 0) return false;
      bound->scale(number);
      break;
    case Arithmetic::kNegation:
      bound->scale(-1);
      break;
    case Arithmetic::kCast:
      break;
    default:
      return false;
  }
  *expression = is_first ? other : one;
  return true;
}

/// Rounding to a number of digits moves a number by half of the last one.
bool take_rounding(Expr** expression, Bound* bound) {
  Oid function;
  List* arguments;
  double digits = 0;
  if (!as_call(*expression, &function, &arguments)) return false;
  const bool known = function == F_ROUND_FLOAT8 || function == F_DROUND ||
                     function == F_ROUND_NUMERIC ||
                     (function == F_ROUND_NUMERIC_INT4 &&
                      read_number(argument(arguments, 1), &digits) && std::fabs(digits) < 300);
  if (!known) return false;
  bound->add((bound->upper ? 1 : -1) * 0.5000001 * std::pow(10, -digits));
  *expression = argument(arguments, 0);
  return true;
}

/// A value that stands for NULL, which does not fulfil the condition.
bool take_default(Expr** expression, const Bound& bound) {
  if (!IsA(*expression, CoalesceExpr)) return false;
  List* const values = reinterpret_cast<CoalesceExpr*>(*expression)->args;
  double number;
  if (list_length(values) != 2 || !read_number(argument(values, 1), &number)) return false;
  const double beyond = number - bound.limit;
  if ((bound.upper ? beyond : -beyond) <= bound.error) return false;
  *expression = argument(values, 0);
  return true;
}

bool take_step(Expr** expression, Bound* bound) {
  Expr* const whole = *expression;
  const Oid type = exprType(reinterpret_cast<Node*>(whole));
  if (IsA(whole, RelabelType)) {
    *expression = reinterpret_cast<RelabelType*>(whole)->arg;
    return true;
  }
  if (is_cast(whole)) {
    bound->add(0);
    *expression = static_cast<Expr*>(linitial(reinterpret_cast<FuncExpr*>(whole)->args));
    return true;
  }
  List* arguments;
  const Arithmetic arithmetic = as_arithmetic(whole, &arguments);
  // Quotients of integers are cut off, and single precision has few digits.
  const bool is_rough =
      type == FLOAT4OID || (arithmetic == Arithmetic::kQuotient && is_integer_type(type));
  if (arithmetic != Arithmetic::kNone)
    return !is_rough && take_call(arithmetic, arguments, expression, bound);
  return take_rounding(expression, bound) || take_default(expression, *bound);
}

}  // namespace

SolvedBound solve_for_distance(Expr* condition) {
  constexpr SolvedBound kNone = {nullptr, 0, false};
  Oid function;
  List* arguments;
  if (!as_call(condition, &function, &arguments)) return kNone;
  const Comparison* const comparison = find_comparison(function, true);
  if (comparison == nullptr) return kNone;
  Expr* const lesser = argument(arguments, comparison->distance_first ? 0 : 1);
  Expr* const greater = argument(arguments, comparison->distance_first ? 1 : 0);
  Bound bound = {0, 0, true};
  Expr* expression = lesser;
  if (!read_number(greater, &bound.limit)) {
    if (!read_number(lesser, &bound.limit)) return kNone;
    bound.upper = false;
    expression = greater;
  }
  const Expr* const whole = expression;
  while (take_step(&expression, &bound)) {
  }
  if (expression == whole || !bound.upper) return kNone;
  const double most = bound.limit + bound.error;
  // To PostgreSQL NaN is larger than any number.
  return std::isfinite(most) ? SolvedBound{expression, most, whole == greater} : kNone;
}

}  // namespace gpujoin
