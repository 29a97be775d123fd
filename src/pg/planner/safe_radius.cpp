#include "pg/planner/safe_radius.h"

#include "pg/planner/comparison.h"
#include "pg/planner/safe_expression.h"
#include "pg/types/number_datum.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

// Numbers that are not whole are 0 or between these in magnitude. So many products of them, with a
// difference between that cancels all but the last bits, are far from the limits of their type.
constexpr double kLeast = 1e-9, kMost = 1e9;
constexpr int kMostSingleProducts = 2, kMostProducts = 5;

/// Whether a call's result is as large as its argument. Sets its arguments.
bool keeps_magnitude(Expr* radius, List** arguments) {
  Oid function;
  if (!as_call(radius, &function, arguments)) return false;
  const Arithmetic arithmetic = arithmetic_of(function);
  return arithmetic == Arithmetic::kNegation || arithmetic == Arithmetic::kMagnitude ||
         arithmetic == Arithmetic::kCast || casts_numeric(function);
}

Expr* float8_of(Expr* number) {
  const bool wide = exprType(reinterpret_cast<Node*>(number)) == INT8OID;
  return wide ? cast_by(F_FLOAT8_INT8, number) : as_float8(number);
}

/// The largest magnitude of a type's numbers that is safe.
double most_of(Oid type) {
  switch (type) {
    case INT2OID:
      return PG_INT16_MAX;
    case INT4OID:
      return PG_INT32_MAX;
    case INT8OID:
      return static_cast<double>(PG_INT64_MAX / 2);
    default:
      return kMost * kMost * kMost * kMost;
  }
}

/// A walk over a radius.
struct Walk {
  const PlannerInfo* root;
  double most_whole;  ///< magnitude of whole numbers that rows have
  List* numbers;      ///< what the radius is computed of, each once
  int products;
};

/// A number that is there already, or is computed without an error.
bool add_number(Walk* walk, Expr* number, double* most) {
  Node* const node = reinterpret_cast<Node*>(number);
  if (float8_of(number) == nullptr && exprType(node) != NUMERICOID) return false;
  if (IsA(node, Const)) {
    double constant;
    if (!read_number(number, &constant)) return false;
    *most = std::fabs(constant);
    return is_integer_type(exprType(node)) || *most == 0 || (*most >= kLeast && *most <= kMost);
  }
  if (!cannot_raise(walk->root, number)) return false;
  *most = is_integer_type(exprType(node)) ? walk->most_whole : kMost;
  walk->numbers = list_append_unique(walk->numbers, number);
  return true;
}

/// Whether a radius is such arithmetic, without an error where its numbers are of moderate size.
/// *most: its largest magnitude then.
bool is_safe(Walk* walk, Expr* radius, double* most) {
  List* arguments;
  const bool keeps = keeps_magnitude(radius, &arguments);
  const Arithmetic step = as_arithmetic(radius, &arguments);
  const bool sum = step == Arithmetic::kSum || step == Arithmetic::kDifference;
  const bool scales = step == Arithmetic::kProduct || step == Arithmetic::kQuotient;
  if (!keeps && !sum && !scales) return add_number(walk, radius, most);
  Expr *const one = argument(arguments, 0), *const other =
                                                argument(arguments, list_length(arguments) - 1);
  double of_other = 0;
  if (!is_safe(walk, one, most) || (!keeps && !is_safe(walk, other, &of_other))) return false;
  const bool is_scaled = IsA(other, Const), is_scale = IsA(one, Const);
  if (sum) *most += of_other;
  if (step == Arithmetic::kProduct) {
    if (!is_scaled && !is_scale) return false;
    *most *= of_other;
  }
  if (step == Arithmetic::kQuotient) {
    if (!is_scaled || of_other == 0) return false;
    *most /= of_other;
  }
  const Oid type = exprType(reinterpret_cast<Node*>(radius));
  walk->products += scales && !is_integer_type(type);
  return walk->products <= (type == FLOAT4OID ? kMostSingleProducts : kMostProducts) &&
         *most <= most_of(type);
}

Expr* test(Oid function, Expr* one, Expr* other) {
  return make_call(function, BOOLOID, list_make2(one, other));
}

/// Whether a row's number is of moderate size.
Expr* is_moderate(Expr* number, double most_whole) {
  const Oid type = exprType(reinterpret_cast<Node*>(number));
  const bool numeric = type == NUMERICOID, whole = is_integer_type(type);
  Expr* const compared = numeric ? number : float8_of(number);
  Expr* const size = make_call(numeric ? F_NUMERIC_ABS : F_FLOAT8ABS,
                               numeric ? NUMERICOID : FLOAT8OID, list_make1(compared));
  const auto constant = [&](double value) {
    return numeric ? reinterpret_cast<Expr*>(makeConst(
                         NUMERICOID, -1, InvalidOid, -1,
                         DirectFunctionCall1(float8_numeric, Float8GetDatum(value)), false, false))
                   : float8_constant(value);
  };
  Expr* const at_most =
      test(numeric ? F_NUMERIC_LE : F_FLOAT8LE, size, constant(whole ? most_whole : kMost));
  if (whole) return at_most;
  Expr* const at_least = test(numeric ? F_NUMERIC_GE : F_FLOAT8GE, size, constant(kLeast));
  return makeBoolExpr(OR_EXPR,
                      list_make2(test(numeric ? F_NUMERIC_EQ : F_FLOAT8EQ, size, constant(0)),
                                 makeBoolExpr(AND_EXPR, list_make2(at_least, at_most), -1)),
                      -1);
}

CaseWhen* when(BoolExprType all, List* tests, Expr* result) {
  return make_when(
      list_length(tests) == 1 ? static_cast<Expr*>(linitial(tests)) : makeBoolExpr(all, tests, -1),
      result);
}

/// So many times the radius is safe, too.
Expr* as_safe(const PlannerInfo* root, Expr* radius, double times) {
  Walk walk = {root, 0, NIL, 0};
  bool safe = false;
  Node* const node = reinterpret_cast<Node*>(radius);
  List* arguments;
  const bool casts = IsA(node, FuncExpr) && keeps_magnitude(radius, &arguments);
  const Oid type = exprType(casts ? static_cast<Node*>(linitial(arguments)) : node);
  for (double whole = 0x1p60; whole >= 1024 && !safe; whole /= 4) {
    double most = 0;
    walk = {root, whole, NIL, 0};
    safe = is_safe(&walk, radius, &most) && times * most <= most_of(type);
  }
  if (!safe) return nullptr;
  if (walk.numbers == NIL) return radius;
  List *nulls = NIL, *sizes = NIL;
  ListCell* cell;
  foreach (cell, walk.numbers) {
    Expr* const number = static_cast<Expr*>(lfirst(cell));
    nulls = lappend(nulls, make_null_test(number));
    sizes = lappend(sizes, is_moderate(number, walk.most_whole));
  }
  return make_case(
      list_make2(
          when(OR_EXPR, nulls, reinterpret_cast<Expr*>(makeNullConst(FLOAT8OID, -1, InvalidOid))),
          when(AND_EXPR, sizes, radius)),
      float8_constant(get_float8_nan()));
}

/// A number of the type; null: it has none like it.
Const* number_of(Oid type, double number) {
  Datum value;
  switch (type) {
    case INT2OID:
      value = Int16GetDatum(static_cast<std::int16_t>(number));
      break;
    case INT4OID:
      value = Int32GetDatum(static_cast<std::int32_t>(number));
      break;
    case INT8OID:
      value = Int64GetDatum(static_cast<std::int64_t>(number));
      break;
    case FLOAT4OID:
      value = Float4GetDatum(static_cast<float>(number));
      break;
    case FLOAT8OID:
      value = Float8GetDatum(number);
      break;
    default:
      return nullptr;
  }
  std::int16_t length;
  bool by_value;
  get_typlenbyval(type, &length, &by_value);
  return makeConst(type, -1, InvalidOid, length, value, false, by_value);
}

}  // namespace

Expr* as_safe_radius(const PlannerInfo* root, Expr* radius) {
  Expr* const safe = as_safe(root, radius, 1);
  return safe == radius ? nullptr : safe;
}

Expr* as_safe_term(const PlannerInfo* root, Expr* term) {
  constexpr double kTerms = 4;
  return as_safe(root, term, kTerms);
}

Expr* number_of_safe_radius(Expr* radius) {
  if (IsA(radius, Var)) return nullptr;
  const List* const columns =
      pull_var_clause(reinterpret_cast<Node*>(radius), PVC_RECURSE_PLACEHOLDERS);
  ListCell* cell;
  foreach (cell, columns)
    if (!equal(lfirst(cell), linitial(columns))) return nullptr;
  return columns != NIL ? static_cast<Expr*>(linitial(columns)) : nullptr;
}

double safe_radius_at(Expr* radius, double number) {
  const Expr* const replaced = number_of_safe_radius(radius);
  if (replaced == nullptr || !(std::fabs(number) <= most_of(INT8OID))) return NAN;
  Const* const constant = number_of(exprType(reinterpret_cast<const Node*>(replaced)), number);
  if (constant == nullptr) return NAN;
  const Node* const found = eval_const_expressions(
      nullptr,
      reinterpret_cast<Node*>(with_replaced(radius, replaced, reinterpret_cast<Expr*>(constant))));
  const Const* const value = reinterpret_cast<const Const*>(found);
  return IsA(found, Const) && !value->constisnull ? DatumGetFloat8(value->constvalue) : NAN;
}

}  // namespace gpujoin
