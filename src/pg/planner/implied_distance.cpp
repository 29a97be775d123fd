#include "pg/planner/implied_distance.h"

#include "pg/planner/bit_clause.h"
#include "pg/planner/column_distance.h"
#include "pg/planner/comparison.h"
#include "pg/planner/distance_call.h"
#include "pg/planner/earth_clause.h"
#include "pg/planner/geometric_clause.h"
#include "pg/planner/great_circle_formula.h"
#include "pg/planner/sky_clause.h"
#include "pg/types/column_tests.h"
#include "pg/types/number_datum.h"
#include "pg/types/product_test.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
}

namespace gpujoin {
namespace {

// ---- Bounds of numbers

/// Where the condition holds, a number is at most `times * limit + added`, or at least that, but
/// for roundings.
struct Bound {
  Expr* limit;  ///< what the condition compares with
  bool strict;
  bool upper;
  bool of_nan;  ///< the condition holds where the number is NaN: to PostgreSQL that is most of all
  bool of_null = false;  ///< it may hold where the number is NULL
  bool rounded = false;  ///< the steps from the condition to the number round
  double times = 1, added = 0;
  double size = 0;  ///< of all that was added

  void add(double number) {
    added += number;
    size += std::fabs(number);
    rounded = true;
  }
  void scale(double by) {
    times *= by;
    added *= by;
    size *= std::fabs(by);
    rounded = rounded || std::fabs(by) != 1;
    if (by < 0) upper = !upper;
  }
};

/// Exceeds the share that a few steps of float8, and casts of 15 digits, round off.
constexpr double kRounding = 1e-12;

/// The bound as a number, rounded outwards. False: its limit is no constant.
bool constant_of(const Bound& bound, double* most) {
  double limit;
  if (!read_number(bound.limit, &limit)) return false;
  const double error = kRounding * (std::fabs(bound.times * limit) + bound.size);
  *most = bound.times * limit + bound.added + (bound.upper ? error : -error);
  return std::isfinite(*most);
}

/// An upper bound as float8, rounded outwards, of a form that as_safe_radius() knows. Null: its
/// limit is no number that float8 holds.
Expr* radius_of(const Bound& bound) {
  constexpr double kLoose = 1e-9;
  double most;
  if (constant_of(bound, &most)) return float8_constant(most);
  Expr* const limit = as_radius(bound.limit);
  if (limit == nullptr || IsA(limit, Const)) return nullptr;
  const auto compute = [](Oid function, Expr* one, double other) {
    return make_call(function, FLOAT8OID, list_make2(one, float8_constant(other)));
  };
  Expr* const size = make_call(F_FLOAT8ABS, FLOAT8OID, list_make1(limit));
  Expr* const slack = compute(F_FLOAT8MUL, size, bound.times < 0 ? -kLoose : kLoose);
  Expr* const outer = make_call(F_FLOAT8PL, FLOAT8OID, list_make2(limit, slack));
  return compute(F_FLOAT8PL, compute(F_FLOAT8MUL, outer, bound.times),
                 bound.added + kLoose * bound.size);
}

// ---- Distances

/// Whether a call measures a distance, or a number of bits, and the radius is one for it.
bool match_measure(Expr* distance, Expr* radius, bool strict, SimilarityClause* clause) {
  Oid function;
  List* arguments;
  if (!as_measure(distance, &function, &arguments)) return false;
  const bool known = find_test(function, arguments, TestUse::kMeasure, clause);
  clause->eps = as_radius(radius);
  if (clause->eps == nullptr) return false;
  clause->test.strict = strict;  // what is never exact takes no notice
  if (!known && !match_earth_distance(function, arguments, clause)) return false;
  take_angle(clause);
  return true;
}

/// `inner_product(a, b) >= s`, which is `a <#> b <= -s`.
bool match_product(Expr* product, Bound bound, SimilarityClause* clause) {
  Oid function;
  List* arguments;
  if (bound.upper || bound.rounded || !as_call(product, &function, &arguments) ||
      !find_test(function, arguments, TestUse::kTest, clause) || !is_product(clause->test))
    return false;
  clause->test = distance_test(clause->test);
  clause->test.strict = bound.strict;
  Expr* const least = as_float8(bound.limit);
  if (least == nullptr) return false;
  Expr* const most = bound.times < 0 ? least : make_call(F_FLOAT8UM, FLOAT8OID, list_make1(least));
  clause->eps =
      reinterpret_cast<Expr*>(eval_const_expressions(nullptr, reinterpret_cast<Node*>(most)));
  return true;
}

/// The limit of a bound that no step has rounded.
Expr* limit_of(const Bound& bound) {
  return bound.times < 0 ? make_call(F_FLOAT8UM, FLOAT8OID, list_make1(as_float8(bound.limit)))
                         : bound.limit;
}

/// Whether the bound is one of a distance, from above.
bool match_distance(Expr* expression, const Bound& bound, SimilarityClause* clause) {
  if (match_product(expression, bound, clause)) return true;
  if (!bound.upper) return false;
  const bool negates = bound.times < 0 && as_float8(bound.limit) != nullptr;
  const bool exact = !bound.rounded && (bound.times > 0 || negates);
  Expr* radius = exact ? limit_of(bound) : radius_of(bound);
  if (radius == nullptr) return false;
  radius =
      reinterpret_cast<Expr*>(eval_const_expressions(nullptr, reinterpret_cast<Node*>(radius)));
  const bool strict = exact && bound.strict;
  if (!match_measure(expression, radius, strict, clause)) {
    if (!match_column_distance(expression, radius, clause)) return false;
    clause->test.strict = strict;
  }
  SimilarityTest& test = clause->test;
  // Products that may be NaN are those of values that no engine takes.
  test.of_nan = bound.of_nan && test.by->metric != Metric::kHamming && !is_product(test);
  test.of_null = bound.of_null;
  test.open = test.open || !exact || test.of_nan || test.of_null;
  return true;
}

/// A share of common bits from below is a Jaccard distance from above.
bool match_share(Expr* expression, Bound bound, SimilarityClause* clause) {
  if (bound.upper || !match_common_share(expression, clause)) return false;
  bound.scale(-1);
  bound.add(1);
  clause->eps = radius_of(bound);
  clause->test.of_null = bound.of_null;
  return clause->eps != nullptr;
}

/// Whether the expression is the angle between two places, or half of it, computed by hand.
bool match_formula(Expr* expression, Bound bound, SimilarityClause* clause) {
  double times;
  if (!bound.upper || !match_great_circle(expression, clause, &times)) return false;
  bound.scale(1 / times);
  clause->eps = radius_of(bound);
  clause->test.open = true;
  clause->test.of_nan = bound.of_nan;
  clause->test.of_null = clause->test.of_null || bound.of_null;
  return clause->eps != nullptr;
}

// ---- Steps from the condition to the distance

/// Whether the number is never negative; it may be NaN or NULL.
bool is_not_negative(Expr* number) {
  double constant;
  if (read_number(number, &constant)) return constant >= 0;
  if (IsA(number, RelabelType)) return is_not_negative(reinterpret_cast<RelabelType*>(number)->arg);
  List* arguments = NIL;
  const auto are = [&] {
    ListCell* cell;
    foreach (cell, arguments)
      if (!is_not_negative(static_cast<Expr*>(lfirst(cell)))) return false;
    return true;
  };
  switch (as_arithmetic(number, &arguments)) {
    case Arithmetic::kMagnitude:
    case Arithmetic::kRoot:
    case Arithmetic::kExponential:
      return true;
    case Arithmetic::kPower:
      return read_number(argument(arguments, 1), &constant) && std::fmod(constant, 2) == 0;
    case Arithmetic::kProduct:
      return equal(argument(arguments, 0), argument(arguments, 1)) || are();
    case Arithmetic::kSum:
    case Arithmetic::kQuotient:
    case Arithmetic::kRadians:
    case Arithmetic::kDegrees:
    case Arithmetic::kCast:
      return are();
    default:
      break;
  }
  Oid function;
  SimilarityClause clause;
  return as_measure(number, &function, &arguments) &&
         find_test(function, arguments, TestUse::kMeasure, &clause) && !is_product(clause.test);
}

bool find_bounded(Expr* expression, const Bound& bound, SimilarityClause* clause);

using Find = bool (*)(Expr* expression, const Bound& bound, SimilarityClause* clause);

/// Finds a distance in one of two numbers, where the other one is never negative. A distance of
/// whole values tells more than the difference of one column. Where NaN or NULL fulfils the
/// condition the other number may be that, and the distance anything.
bool find_in_either(List* numbers, const Bound& bound, Find find, SimilarityClause* clause) {
  if (!bound.upper || bound.of_nan || bound.of_null) return false;
  bool found = false;
  for (int i = 0; i < 2; ++i) {
    SimilarityClause one = *clause;
    if ((found && !is_of_one_column(clause->test)) || !is_not_negative(argument(numbers, 1 - i)) ||
        !find(argument(numbers, i), bound, &one))
      continue;
    found = true;
    *clause = one;
    clause->test.open = true;
  }
  return found;
}

/// Finds a distance in a number whose magnitude is at most the bound.
bool find_in_magnitude(Expr* number, Bound bound, SimilarityClause* clause) {
  if (is_not_negative(number)) return find_bounded(number, bound, clause);
  List* arguments = NIL;
  double constant;
  switch (as_arithmetic(number, &arguments)) {
    case Arithmetic::kNegation:
    case Arithmetic::kCast:
      return find_in_magnitude(argument(arguments, 0), bound, clause);
    case Arithmetic::kRadians:
      bound.scale(180 / M_PI);
      return find_in_magnitude(argument(arguments, 0), bound, clause);
    case Arithmetic::kQuotient:
      if (!read_number(argument(arguments, 1), &constant) || constant == 0) return false;
      bound.scale(std::fabs(constant));
      return find_in_magnitude(argument(arguments, 0), bound, clause);
    case Arithmetic::kProduct:
      for (int i = 0; i < 2; ++i) {
        if (!read_number(argument(arguments, i), &constant) || constant == 0) continue;
        bound.scale(1 / std::fabs(constant));
        return find_in_magnitude(argument(arguments, 1 - i), bound, clause);
      }
      return false;
    default:
      break;
  }
  Bound least = bound;
  least.scale(-1);
  if (find_bounded(number, bound, clause) || find_bounded(number, least, clause)) {
    clause->test.open = true;
    return true;
  }
  Expr* const radius = radius_of(bound);
  if (radius == nullptr || !match_column_difference(number, radius, clause)) return false;
  clause->test.open = true;
  clause->test.of_nan = bound.of_nan;
  clause->test.of_null = bound.of_null;
  return true;
}

/// Finds a distance in squares, or products with themselves, whose sum has at most the bound for
/// its root.
bool find_in_squares(Expr* squares, const Bound& bound, SimilarityClause* clause) {
  List* arguments = NIL;
  double power;
  switch (as_arithmetic(squares, &arguments)) {
    case Arithmetic::kSum:
      return find_in_either(arguments, bound, find_in_squares, clause);
    case Arithmetic::kPower:
      return read_number(argument(arguments, 1), &power) && power == 2 &&
             find_in_magnitude(argument(arguments, 0), bound, clause);
    case Arithmetic::kProduct:
      return equal(argument(arguments, 0), argument(arguments, 1)) &&
             find_in_magnitude(argument(arguments, 0), bound, clause);
    default:
      return false;
  }
}

/// A step of arithmetic with a constant. From here on the bound is one of *operand.
bool take_constant(Arithmetic arithmetic, List* arguments, Expr** operand, Bound* bound) {
  double number = 0;
  const bool is_first = read_number(argument(arguments, 0), &number);
  if (!is_first && !read_number(argument(arguments, 1), &number)) return false;
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
    default:
      return false;
  }
  *operand = argument(arguments, is_first ? 1 : 0);
  return true;
}

/// Rounding to a number of digits moves a number by half of the last one.
bool take_rounding(Expr* expression, Expr** operand, Bound* bound) {
  Oid function;
  List* arguments;
  double digits = 0;
  if (!as_call(expression, &function, &arguments)) return false;
  const bool known = function == F_ROUND_FLOAT8 || function == F_DROUND ||
                     function == F_ROUND_NUMERIC ||
                     (function == F_ROUND_NUMERIC_INT4 &&
                      read_number(argument(arguments, 1), &digits) && std::fabs(digits) < 300);
  if (!known) return false;
  bound->add((bound->upper ? 1 : -1) * 0.5000001 * std::pow(10, -digits));
  *operand = argument(arguments, 0);
  return true;
}

/// A value that stands for NULL may fulfil the condition.
bool take_default(Expr* expression, Expr** operand, Bound* bound) {
  if (!IsA(expression, CoalesceExpr)) return false;
  List* const values = reinterpret_cast<CoalesceExpr*>(expression)->args;
  double number, limit;
  if (list_length(values) != 2) return false;
  const bool known = read_number(argument(values, 1), &number) && constant_of(*bound, &limit);
  bound->of_null = bound->of_null || !known || (bound->upper ? number <= limit : number >= limit);
  *operand = argument(values, 0);
  return true;
}

/// Numbers as others that keep 15 digits of them.
bool take_cast(Expr* expression, Expr** operand, Bound* bound) {
  Oid function;
  List* arguments;
  if (IsA(expression, RelabelType)) {
    *operand = reinterpret_cast<RelabelType*>(expression)->arg;
    return true;
  }
  if (!as_call(expression, &function, &arguments) || !casts_numeric(function)) return false;
  bound->rounded = true;
  *operand = argument(arguments, 0);
  return true;
}

/// Takes a step from the expression, and finds a distance in its operand.
bool find_below(Expr* expression, Bound bound, SimilarityClause* clause) {
  Expr* operand = nullptr;
  if (take_cast(expression, &operand, &bound) || take_rounding(expression, &operand, &bound) ||
      take_default(expression, &operand, &bound))
    return find_bounded(operand, bound, clause);
  List* arguments = NIL;
  const Arithmetic arithmetic = as_arithmetic(expression, &arguments);
  const Oid type = exprType(reinterpret_cast<Node*>(expression));
  // Quotients of integers are cut off, and single precision has few digits.
  if (type == FLOAT4OID || (arithmetic == Arithmetic::kQuotient && is_integer_type(type)))
    return false;
  switch (arithmetic) {
    case Arithmetic::kNone:
    case Arithmetic::kPi:
      return false;
    case Arithmetic::kMagnitude:
      return bound.upper && find_in_magnitude(argument(arguments, 0), bound, clause);
    case Arithmetic::kRoot:
      if (!bound.upper || bound.of_nan || !find_in_squares(argument(arguments, 0), bound, clause))
        return false;
      clause->test.open = true;
      return true;
    case Arithmetic::kNegation:
      bound.scale(-1);
      return find_bounded(argument(arguments, 0), bound, clause);
    case Arithmetic::kRadians:
      bound.scale(180 / M_PI);
      return find_bounded(argument(arguments, 0), bound, clause);
    case Arithmetic::kDegrees:
      bound.scale(M_PI / 180);
      return find_bounded(argument(arguments, 0), bound, clause);
    case Arithmetic::kCast:
      return find_bounded(argument(arguments, 0), bound, clause);
    default:
      break;
  }
  if (list_length(arguments) != 2) return false;
  if (take_constant(arithmetic, arguments, &operand, &bound))
    return find_bounded(operand, bound, clause);
  return arithmetic == Arithmetic::kSum && find_in_either(arguments, bound, find_bounded, clause);
}

/// Sets *clause to the condition that a distance within the expression is at most what the bound of
/// the expression makes of it.
bool find_bounded(Expr* expression, const Bound& bound, SimilarityClause* clause) {
  return match_distance(expression, bound, clause) || match_formula(expression, bound, clause) ||
         match_share(expression, bound, clause) || find_below(expression, bound, clause);
}

/// `ST_Area(ST_Intersection(a, b)) > 0`: what two values have in common is more than nothing.
bool match_intersection(const Comparison& comparison, SimilarityClause* clause) {
  Oid function;
  List* arguments;
  double least;
  return !comparison.equal && read_number(comparison.lesser, &least) &&
         (comparison.strict ? least >= 0 : least > 0) &&
         as_call(comparison.greater, &function, &arguments) && measures_extent(function) &&
         as_call(argument(arguments, 0), &function, &arguments) &&
         find_test(function, list_truncate(list_copy(arguments), 2), TestUse::kTest, clause) &&
         tests_boxes(clause->test);
}

bool match_comparison(const Comparison& comparison, SimilarityClause* clause) {
  const bool strict = comparison.strict;
  if (match_intersection(comparison, clause)) {
    clause->eps = float8_constant(0);
    return true;
  }
  if (find_bounded(comparison.lesser, {comparison.greater, strict, true, false}, clause)) {
    clause->test.open = clause->test.open || comparison.equal;
    return true;
  }
  Bound of_greater = {comparison.lesser, strict, comparison.equal, !comparison.equal};
  if (!find_bounded(comparison.greater, of_greater, clause)) return false;
  clause->test.open = clause->test.open || comparison.equal;
  return true;
}

// ---- Conditions

/// `ST_Relate(a, b, 'T********')`: the pattern asks for points of both, in the inside of each or
/// on its boundary.
bool match_relation(Oid function, List* arguments, SimilarityClause* clause) {
  if (list_length(arguments) != 3) return false;
  const Const* const pattern = static_cast<const Const*>(lthird(arguments));
  if (!IsA(pattern, Const) || pattern->constisnull || pattern->consttype != TEXTOID) return false;
  const char* const cells = TextDatumGetCString(pattern->constvalue);
  if (strlen(cells) != 9) return false;
  for (const int common : {0, 1, 3, 4})
    if (strchr("T012t", cells[common]) != nullptr) {
      clause->eps = float8_constant(0);
      return find_test(function, list_truncate(list_copy(arguments), 2), TestUse::kTest, clause);
    }
  return false;
}

/// A function that tests values by their distance, or by their boxes.
bool match_call(Oid function, List* arguments, SimilarityClause* clause) {
  if (find_test(function, arguments, TestUse::kTest, clause)) {
    Expr* const radius = list_length(arguments) > 2 ? argument(arguments, 2) : float8_constant(0);
    const bool has_radius = clause->test.by->form == TestForm::kWithin;
    clause->eps = has_radius ? as_radius(radius) : float8_constant(0);
    return clause->eps != nullptr && clause->test.by->form != TestForm::kNegative;
  }
  return match_circle(function, arguments, clause) ||
         match_earth_box(function, arguments, clause) ||
         match_relation(function, arguments, clause) ||
         match_geometric(function, arguments, clause);
}

/// Whether the expression is a constant that a condition takes for false.
bool is_false(const Expr* value) {
  const Const* const constant = reinterpret_cast<const Const*>(value);
  return IsA(value, Const) && (constant->constisnull || !DatumGetBool(constant->constvalue));
}

bool is_true(const Expr* value) { return IsA(value, Const) && !is_false(value); }

Expr* greatest_of(List* numbers) {
  if (list_length(numbers) == 1) return static_cast<Expr*>(linitial(numbers));
  MinMaxExpr* const greatest = makeNode(MinMaxExpr);
  greatest->minmaxtype = FLOAT8OID;
  greatest->op = IS_GREATEST;
  greatest->args = numbers;
  greatest->location = -1;
  return reinterpret_cast<Expr*>(greatest);
}

/// Whether the expression is NULL where the value is.
bool follows_null(Expr* expression, Expr* value) {
  Node* const node = reinterpret_cast<Node*>(expression);
  return equal(expression, value) ||
         (IsA(value, Var) && !contain_nonstrict_functions(node) &&
          list_member(pull_var_clause(node, PVC_RECURSE_PLACEHOLDERS), value));
}

/// Whether the clause's distance is NULL where the value is.
bool is_compared(Expr* value, const SimilarityClause& clause) {
  for (Expr* const compared : {clause.left, clause.right}) {
    List* const parts = IsA(compared, ArrayExpr) ? reinterpret_cast<ArrayExpr*>(compared)->elements
                                                 : list_make1(compared);
    ListCell* cell;
    foreach (cell, parts)
      if (follows_null(static_cast<Expr*>(lfirst(cell)), value)) return true;
  }
  return false;
}

bool match_any(List* conditions, SimilarityClause* clause);

/// Whether the distance is one of two rows, not of a row and a value that is the same for all.
bool is_of_two_rows(const SimilarityClause& clause) {
  return contain_var_clause(reinterpret_cast<Node*>(clause.left)) &&
         contain_var_clause(reinterpret_cast<Node*>(clause.right));
}

/// One of several conditions that hold together, of two rows if there is one.
bool match_all(List* conditions, SimilarityClause* clause) {
  bool found = false;
  ListCell* cell;
  foreach (cell, conditions) {
    SimilarityClause one;
    if (!implied_distance(static_cast<Expr*>(lfirst(cell)), &one) ||
        (found && !is_of_two_rows(one)))
      continue;
    found = true;
    *clause = one;
    clause->test.open = true;
    if (is_of_two_rows(one)) break;
  }
  return found;
}

/// What a CASE asks for where it is true.
bool match_case(const CaseExpr* choice, SimilarityClause* clause) {
  List* conditions = NIL;
  ListCell* cell;
  bool exact = choice->arg == nullptr && list_length(choice->args) == 1;
  foreach (cell, choice->args) {
    const auto* const when = lfirst_node(CaseWhen, cell);
    exact = exact && is_true(when->result) && is_false(choice->defresult);
    if (is_false(when->result)) continue;
    List* const both = choice->arg != nullptr  ? list_make1(when->result)
                       : is_true(when->result) ? list_make1(when->expr)
                                               : list_make2(when->result, when->expr);
    conditions = lappend(conditions, make_ands_explicit(both));
  }
  if (!is_false(choice->defresult)) conditions = lappend(conditions, choice->defresult);
  if (conditions == NIL || !match_any(conditions, clause)) return false;
  clause->test.open = clause->test.open || !exact;
  return true;
}

/// A condition that holds where any of these does: the same distance within the largest radius that
/// is not NULL. The radii are there already, for an expression might raise an error that a nearer
/// pair would not meet. A value that is NULL may be another reason.
bool match_any(List* conditions, SimilarityClause* clause) {
  List *radii = NIL, *nulls = NIL;
  ListCell* cell;
  foreach (cell, conditions) {
    Expr* const condition = static_cast<Expr*>(lfirst(cell));
    if (IsA(condition, NullTest) &&
        reinterpret_cast<NullTest*>(condition)->nulltesttype == IS_NULL) {
      nulls = lappend(nulls, reinterpret_cast<NullTest*>(condition)->arg);
      continue;
    }
    SimilarityClause one;
    if (!implied_distance(condition, &one)) return false;
    if (radii == NIL) *clause = one;
    const bool alone = list_length(conditions) == 1;
    if (one.test.by != clause->test.by || !equal(one.left, clause->left) ||
        !equal(one.right, clause->right) || (!alone && one.test.by->form == TestForm::kNegative) ||
        (!alone && !(IsA(one.eps, Const) || IsA(one.eps, Param))))
      return false;
    SimilarityTest& test = clause->test;
    test.open = test.open || one.test.open || test.strict != one.test.strict;
    test.strict = test.strict && one.test.strict;
    test.of_nan = test.of_nan || one.test.of_nan;
    test.of_null = test.of_null || one.test.of_null;
    radii = lappend(radii, one.eps);
  }
  foreach (cell, nulls) {
    if (radii == NIL || !is_compared(static_cast<Expr*>(lfirst(cell)), *clause)) return false;
    clause->test.open = clause->test.of_null = true;
  }
  clause->eps = greatest_of(radii);
  if (nulls != NIL) clause->eps = or_default(clause->eps, -1);  // within which nothing lies
  return radii != NIL;
}

/// `NOT ST_Disjoint(a, b)`.
bool match_negation(Expr* condition, SimilarityClause* clause) {
  Oid function;
  List* arguments;
  if (!as_call(condition, &function, &arguments) ||
      !find_test(function, arguments, TestUse::kRefute, clause))
    return false;
  clause->eps = float8_constant(0);
  return true;
}

bool match(Expr* condition, SimilarityClause* clause) {
  *clause = {condition, nullptr, nullptr, nullptr, {}, {}, false};
  switch (nodeTag(condition)) {
    case T_BooleanTest: {
      const auto* const test = reinterpret_cast<const BooleanTest*>(condition);
      return test->booltesttype == IS_TRUE && implied_distance(test->arg, clause);
    }
    case T_CoalesceExpr: {
      List* values = NIL;
      ListCell* cell;
      foreach (cell, reinterpret_cast<CoalesceExpr*>(condition)->args)
        if (!is_false(static_cast<Expr*>(lfirst(cell)))) values = lappend(values, lfirst(cell));
      if (values == NIL || !match_any(values, clause)) return false;
      clause->test.open = clause->test.open || list_length(values) > 1;
      return true;
    }
    case T_CaseExpr:
      return match_case(reinterpret_cast<const CaseExpr*>(condition), clause);
    case T_BoolExpr: {
      const auto* const both = reinterpret_cast<const BoolExpr*>(condition);
      switch (both->boolop) {
        case OR_EXPR:
          return match_any(both->args, clause);
        case AND_EXPR:
          return match_all(both->args, clause);
        case NOT_EXPR:
          return match_negation(argument(both->args, 0), clause);
      }
      return false;
    }
    default:
      break;
  }
  Oid function;
  List* arguments;
  Comparison comparison;
  if (as_comparison(condition, &comparison)) return match_comparison(comparison, clause);
  return as_call(condition, &function, &arguments) && match_call(function, arguments, clause);
}

}  // namespace

bool implied_distance(Expr* condition, SimilarityClause* clause) {
  if (!match(condition, clause)) return false;
  clause->condition = condition;
  return true;
}

Expr* distance_below(Expr* expression, bool falls) {
  constexpr double kMost = 1e6;  // of the factor, of its inverse, and of what is added
  Bound bound = {float8_constant(0), false, true, false};
  Oid function;
  List* arguments;
  SimilarityClause clause;
  const auto measures = [&] {
    double times;
    return (as_measure(expression, &function, &arguments) &&
            find_test(function, arguments, TestUse::kMeasure, &clause)) ||
           match_great_circle(expression, &clause, &times);
  };
  while (!measures()) {
    Expr* operand = nullptr;
    const Arithmetic arithmetic = as_arithmetic(expression, &arguments);
    if (exprType(reinterpret_cast<Node*>(expression)) != FLOAT8OID) return nullptr;
    const bool negates = arithmetic == Arithmetic::kNegation;
    if (negates || arithmetic == Arithmetic::kDegrees || arithmetic == Arithmetic::kRadians) {
      if (negates) bound.scale(-1);
      operand = argument(arguments, 0);
    } else if (arithmetic == Arithmetic::kNone || list_length(arguments) != 2 ||
               !take_constant(arithmetic, arguments, &operand, &bound)) {
      return nullptr;
    }
    expression = operand;
  }
  const double factor = std::fabs(bound.times);
  const bool moderate = factor <= kMost && factor >= 1 / kMost && bound.size <= kMost;
  return moderate && (bound.times < 0) == falls ? expression : nullptr;
}

}  // namespace gpujoin
