#include "pg/planner/numeric_digits.h"

#include "pg/planner/comparison.h"
#include "pg/types/number_datum.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
}

namespace gpujoin {
namespace {

/// Bounds of a numeric x: |x| < 10^before, and |x| >= 10^-after unless x is 0. NaN and infinities
/// are within any bounds: arithmetic and casts turn them into NaN and infinities without an error.
struct Digits {
  int before, after;
};

constexpr int kMaxDigits = 300;  // float8 holds 10^-307 to 10^308, numeric far more
constexpr int kMaxFloat4Digits = 37;

bool are_few(const Digits& digits, int most) {
  return digits.before <= most && digits.after <= most;
}

/// Reads the bounds that a declared precision sets.
bool declared_digits(Node* number, Digits* digits) {
  std::int32_t typmod = exprTypmod(number);
  const Oid type = getBaseTypeAndTypmod(exprType(number), &typmod);
  if ((type != NUMERICOID && type != NUMERICARRAYOID) || typmod < VARHDRSZ) return false;
  const std::int32_t declared = typmod - VARHDRSZ;
  const int precision = (declared >> 16) & 0xffff;
  const int scale = ((declared & 0x7ff) ^ 1024) - 1024;  // negative scales are of PostgreSQL 15
  *digits = {precision - scale, scale};
  return true;
}

bool constant_digits(const Const* constant, Digits* digits) {
  if (constant->constisnull || constant->consttype != NUMERICOID) return false;
  const double value = std::fabs(number_of(NUMERICOID, constant->constvalue));
  if (!std::isfinite(value)) return false;
  *digits = {value < 1 ? 0 : static_cast<int>(std::log10(value)) + 2,
             DatumGetInt32(DirectFunctionCall1(numeric_scale, constant->constvalue))};
  return true;
}

bool find_digits(Node* number, Digits* digits);

/// Finds bounds that hold for each of the numbers.
bool find_common_digits(List* numbers, Digits* digits) {
  *digits = {0, 0};
  ListCell* cell;
  foreach (cell, numbers) {
    Digits one;
    if (!find_digits(static_cast<Node*>(lfirst(cell)), &one)) return false;
    *digits = {std::max(digits->before, one.before), std::max(digits->after, one.after)};
  }
  return true;
}

/// Finds the bounds of what a function returns. A quotient may be rounded: one digit more.
bool called_digits(Oid function, List* arguments, Digits* digits) {
  Digits one, other;
  const auto find_both = [&] {
    return find_digits(static_cast<Node*>(linitial(arguments)), &one) &&
           find_digits(static_cast<Node*>(lsecond(arguments)), &other);
  };
  switch (function) {
    case F_NUMERIC_INT2:
      *digits = {5, 0};
      return true;
    case F_NUMERIC_INT4:
      *digits = {10, 0};
      return true;
    case F_NUMERIC_INT8:
      *digits = {19, 0};
      return true;
    case F_NUMERIC_FLOAT4:
      *digits = {39, 46};
      return true;
    case F_NUMERIC_UMINUS:
    case F_NUMERIC_ABS:
    case F_ABS_NUMERIC:
      return find_common_digits(arguments, digits);
    case F_NUMERIC_ADD:
    case F_NUMERIC_SUB:
      if (!find_common_digits(arguments, digits)) return false;
      ++digits->before;
      return true;
    case F_NUMERIC_MUL:
      if (!find_both()) return false;
      *digits = {one.before + other.before, one.after + other.after};
      return true;
    case F_NUMERIC_DIV: {
      const Const* const divisor = static_cast<const Const*>(lsecond(arguments));
      if (!find_both() || !IsA(divisor, Const) || number_of(NUMERICOID, divisor->constvalue) == 0)
        return false;
      *digits = {one.before + other.after + 1, one.after + other.before + 1};
      return true;
    }
    default:
      return false;
  }
}

/// Finds bounds of a number, or of all elements of an array. Returns false if these are unknown or
/// beyond kMaxDigits.
bool find_digits(Node* number, Digits* digits) {
  Oid function;
  List* arguments;
  bool found = declared_digits(number, digits);
  if (!found && IsA(number, RelabelType))
    found =
        find_digits(reinterpret_cast<Node*>(reinterpret_cast<RelabelType*>(number)->arg), digits);
  if (!found && IsA(number, Const))
    found = constant_digits(reinterpret_cast<Const*>(number), digits);
  if (!found && IsA(number, CoalesceExpr))
    found = find_common_digits(reinterpret_cast<CoalesceExpr*>(number)->args, digits);
  if (!found && IsA(number, ArrayExpr))
    found = find_common_digits(reinterpret_cast<ArrayExpr*>(number)->elements, digits);
  if (!found && IsA(number, MinMaxExpr))
    found = find_common_digits(reinterpret_cast<MinMaxExpr*>(number)->args, digits);
  if (!found && as_call(reinterpret_cast<Expr*>(number), &function, &arguments))
    found = called_digits(function, arguments, digits);
  return found && are_few(*digits, kMaxDigits);
}

}  // namespace

bool has_few_digits(Node* call) {
  Oid function;
  List* arguments;
  Digits digits;
  const auto* const of_array =
      IsA(call, ArrayCoerceExpr) ? reinterpret_cast<ArrayCoerceExpr*>(call) : nullptr;
  Expr* const called = of_array != nullptr ? of_array->elemexpr : reinterpret_cast<Expr*>(call);
  if (!as_call(called, &function, &arguments)) return false;
  switch (function) {
    case F_FLOAT4_NUMERIC:
    case F_FLOAT8_NUMERIC: {
      Expr* const number = of_array != nullptr ? of_array->arg : argument(arguments, 0);
      return find_digits(reinterpret_cast<Node*>(number), &digits) &&
             (function == F_FLOAT8_NUMERIC || are_few(digits, kMaxFloat4Digits));
    }
    default:
      return of_array == nullptr && called_digits(function, arguments, &digits) &&
             are_few(digits, kMaxDigits);
  }
}

}  // namespace gpujoin
