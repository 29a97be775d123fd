#include "pg/planner/similarity_clause.h"

#include "pg/planner/column_distance.h"
#include "pg/planner/comparison.h"
#include "pg/planner/earth_clause.h"
#include "pg/planner/safe_expression.h"
#include "pg/planner/safe_radius.h"
#include "pg/planner/sky_clause.h"
#include "pg/planner/solved_bound.h"
#include "pg/types/column_tests.h"
#include "pg/types/product_test.h"

extern "C" {
#include "catalog/pg_operator_d.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace gpujoin {
namespace {

/// A constant text or boolean in SQL's words, or null.
const char* words_of(const Node* node) {
  if (!IsA(node, Const)) return nullptr;
  const Const* const constant = reinterpret_cast<const Const*>(node);
  if (constant->constisnull) return nullptr;
  if (constant->consttype == BOOLOID) return DatumGetBool(constant->constvalue) ? "true" : "false";
  return constant->consttype == TEXTOID ? TextDatumGetCString(constant->constvalue) : nullptr;
}

/// The values that a call compares, its first two arguments; columns of degrees come as numbers,
/// two for each value.
void take_values(List* arguments, SimilarityClause* clause) {
  clause->left = argument(arguments, 0);
  clause->right = argument(arguments, 1);
  if (exprType(reinterpret_cast<Node*>(clause->left)) != FLOAT8OID) return;
  clause->left = as_array(list_make2(clause->left, clause->right));
  clause->right = as_array(list_copy_tail(arguments, 2));
}

/// Whether a value has no more dimensions than conditions compare, as far as its type limits them.
bool may_compare(const ValueType& type, const Expr* value) {
  const std::int32_t dims = exprTypmod(reinterpret_cast<const Node*>(value));
  return type.most_declared == 0 || (dims > 0 && dims <= type.most_declared);
}

/// Sets the clause's test and values where a call tests, or with `distance` measures, something
/// that is known.
bool find_test(Oid function, List* arguments, bool distance, SimilarityClause* clause) {
  const int count = list_length(arguments);
  if (count < 2) return false;
  const auto type_of = [&](int i) { return exprType(static_cast<Node*>(list_nth(arguments, i))); };
  const bool columns = type_of(0) == FLOAT8OID;
  const bool known =
      columns ? count == 4 && find_test(function, InvalidOid, 0, nullptr, distance, &clause->test)
              : type_of(0) == type_of(1) &&
                    find_test(function, type_of(0), count - 2,
                              words_of(static_cast<const Node*>(llast(arguments))), distance,
                              &clause->test);
  if (!known) return false;
  take_values(arguments, clause);
  return may_compare(*clause->test.type, clause->left) &&
         may_compare(*clause->test.type, clause->right);
}

bool is_integer(const Expr* value, int integer) {
  const Const* const constant = reinterpret_cast<const Const*>(value);
  return IsA(value, Const) && constant->consttype == INT4OID && !constant->constisnull &&
         DatumGetInt32(constant->constvalue) == integer;
}

/// The operands of `a # b`, or of `(a # b)::bit(n)` where that has all bits of integers.
bool find_operands(Expr* difference, List** operands) {
  Oid function;
  if (!as_call(difference, &function, operands)) return false;
  if (function == F_BITXOR) return true;
  const bool wide = function == F_BIT_INT8_INT4;
  if (!wide && function != F_BIT_INT4_INT4) return false;
  return list_length(*operands) == 2 && is_integer(argument(*operands, 1), wide ? 64 : 32) &&
         as_call(argument(*operands, 0), &function, operands) &&
         function == (wide ? F_INT8XOR : F_INT4XOR);
}

/// A call that may measure a distance; `bit_count(a # b)` is seen as one of a and b.
bool as_measure(Expr* expression, Oid* function, List** arguments) {
  if (!as_call(expression, function, arguments)) return false;
  return *function != F_BIT_COUNT_BIT || find_operands(argument(*arguments, 0), arguments);
}

/// The radius as float8; numbers of bits are integers, and constants stay such. What float8 rounds
/// of an int8 is beyond any number of bits.
Expr* as_radius(Expr* radius, Metric metric) {
  if (metric != Metric::kHamming) return as_float8(radius);
  const bool wide = exprType(reinterpret_cast<Node*>(radius)) == INT8OID;
  Expr* const number = wide ? cast_by(F_FLOAT8_INT8, radius) : as_float8(radius);
  return reinterpret_cast<Expr*>(eval_const_expressions(nullptr, reinterpret_cast<Node*>(number)));
}

Expr* zero() {
  return reinterpret_cast<Expr*>(
      makeConst(FLOAT8OID, -1, InvalidOid, sizeof(double), Float8GetDatum(0), false, true));
}

}  // namespace

bool is_the_same_for_all_rows(Expr* value) {
  Node* const node = reinterpret_cast<Node*>(value);
  return !contain_var_clause(node) && !contain_volatile_functions(node) && !contain_subplans(node);
}

bool comes_from(PlannerInfo* root, Expr* value, Relids relations) {
  Node* const node = reinterpret_cast<Node*>(value);
  if (contain_volatile_functions(node) || contain_subplans(node)) return false;
  const Relids used = pull_varnos(root, node);
  return !bms_is_empty(used) && bms_is_subset(used, relations);
}

namespace {

bool match_any_radius(Expr* condition, SimilarityClause* clause);

Expr* greatest_of(List* numbers) {
  MinMaxExpr* const greatest = makeNode(MinMaxExpr);
  greatest->minmaxtype = FLOAT8OID;
  greatest->op = IS_GREATEST;
  greatest->args = numbers;
  greatest->location = -1;
  return reinterpret_cast<Expr*>(greatest);
}

/// The same distance within one of several radii is within the largest that is not NULL. The radii
/// are there already, for an expression might raise an error that a nearer pair would not meet.
bool match_alternatives(Expr* condition, SimilarityClause* clause) {
  List* radii = NIL;
  ListCell* cell;
  foreach (cell, reinterpret_cast<BoolExpr*>(condition)->args) {
    SimilarityClause one;
    if (!match_any_radius(static_cast<Expr*>(lfirst(cell)), &one) ||
        one.test.by->form != TestForm::kDistance || !(IsA(one.eps, Const) || IsA(one.eps, Param)))
      return false;
    if (radii == NIL) *clause = one;
    if (one.test.by != clause->test.by || one.test.strict != clause->test.strict ||
        !equal(one.left, clause->left) || !equal(one.right, clause->right))
      return false;
    radii = lappend(radii, one.eps);
  }
  clause->condition = condition;
  clause->eps = greatest_of(radii);
  return true;
}

/// `-(a <#> b) >= s` and `inner_product(a, b) >= s`, as `a <#> b <= -s`.
bool match_product(Expr* product, Expr* least, SimilarityClause* clause) {
  Oid function;
  List* arguments;
  if (!as_call(product, &function, &arguments)) return false;
  const bool negated = function == F_FLOAT8UM;
  if (negated && !as_call(argument(arguments, 0), &function, &arguments)) return false;
  Expr* const radius = as_float8(least);
  if (radius == nullptr || !find_test(function, arguments, negated, clause) ||
      !is_product(clause->test))
    return false;
  clause->test = distance_test(clause->test);
  clause->eps = reinterpret_cast<Expr*>(eval_const_expressions(
      nullptr,
      reinterpret_cast<Node*>(makeFuncExpr(F_FLOAT8UM, FLOAT8OID, list_make1(radius), InvalidOid,
                                           InvalidOid, COERCE_EXPLICIT_CALL))));
  return true;
}

/// Sets *clause if the condition is a similarity, whatever its radius comes from.
bool match_any_radius(Expr* condition, SimilarityClause* clause) {
  if (is_orclause(condition)) return match_alternatives(condition, clause);
  Oid function;
  List* arguments;
  if (!as_call(condition, &function, &arguments)) return false;
  *clause = {condition, nullptr, nullptr, nullptr, {}, {}, false};
  bool known = false;
  if (const Comparison* const comparison = find_comparison(function)) {
    Expr* const distance = argument(arguments, comparison->distance_first ? 0 : 1);
    Expr* const radius = argument(arguments, comparison->distance_first ? 1 : 0);
    if (match_product(radius, distance, clause)) {
      clause->test.strict = comparison->strict;
      return true;
    }
    if (!as_measure(distance, &function, &arguments)) return false;
    known = find_test(function, arguments, true, clause);
    clause->test.strict = comparison->strict;
    clause->eps = known ? as_radius(radius, clause->test.by->metric) : as_float8(radius);
    if (clause->eps == nullptr) return false;
    if (!known) known = match_earth_distance(function, arguments, clause);
    if (known) take_angle(clause);
  } else {
    known = find_test(function, arguments, false, clause);
    if (known)
      clause->eps = as_radius(list_length(arguments) > 2 ? argument(arguments, 2) : zero(),
                              clause->test.by->metric);
    else
      known =
          match_circle(function, arguments, clause) || match_earth_box(function, arguments, clause);
  }
  return known && clause->eps != nullptr;
}

/// Whether the expression is a constant that a condition takes for false.
bool is_false(const Expr* value) {
  const Const* const constant = reinterpret_cast<const Const*>(value);
  return IsA(value, Const) && (constant->constisnull || !DatumGetBool(constant->constvalue));
}

bool is_true(const Expr* value) { return IsA(value, Const) && !is_false(value); }

/// Returns the x of `x IS TRUE`, `coalesce(x, false)` and `CASE WHEN x THEN true END`, or the
/// condition itself. The condition is true if and only if x is.
Expr* tested_for_truth(Expr* condition) {
  switch (nodeTag(condition)) {
    case T_BooleanTest: {
      const auto* const test = reinterpret_cast<const BooleanTest*>(condition);
      return test->booltesttype == IS_TRUE ? tested_for_truth(test->arg) : condition;
    }
    case T_CoalesceExpr: {
      List* const values = reinterpret_cast<CoalesceExpr*>(condition)->args;
      return list_length(values) == 2 && is_false(argument(values, 1))
                 ? tested_for_truth(argument(values, 0))
                 : condition;
    }
    case T_CaseExpr: {
      const auto* const choice = reinterpret_cast<const CaseExpr*>(condition);
      const auto* const when = linitial_node(CaseWhen, choice->args);
      const bool tests = choice->arg == nullptr && list_length(choice->args) == 1 &&
                         is_true(when->result) && is_false(choice->defresult);
      return tests ? tested_for_truth(when->expr) : condition;
    }
    default:
      return condition;
  }
}

/// Puts the value of the left relations first in each difference; false where values are others.
bool put_columns_in_order(PlannerInfo* root, Relids left, Relids right, SimilarityClause* clause) {
  List* values[2] = {NIL, NIL};
  ListCell *one, *other;
  forboth(one, reinterpret_cast<ArrayExpr*>(clause->left)->elements, other,
          reinterpret_cast<ArrayExpr*>(clause->right)->elements) {
    Expr* pair[2] = {static_cast<Expr*>(lfirst(one)), static_cast<Expr*>(lfirst(other))};
    if (comes_from(root, pair[0], right)) std::swap(pair[0], pair[1]);
    if (!comes_from(root, pair[0], left) || !comes_from(root, pair[1], right)) return false;
    for (int i = 0; i < 2; ++i) values[i] = lappend(values[i], pair[i]);
  }
  clause->left = as_array(values[0]);
  clause->right = as_array(values[1]);
  return true;
}

/// Puts the value of the left relations first; false where the values are others.
bool put_in_order(PlannerInfo* root, Relids left, Relids right, SimilarityClause* clause,
                  bool* swapped) {
  *swapped = comes_from(root, clause->left, right);
  if (*swapped) std::swap(clause->left, clause->right);
  return comes_from(root, clause->left, left) && comes_from(root, clause->right, right);
}

/// A distance within arithmetic: its bound selects pairs, and the condition decides them.
bool match_solved(Expr* condition, SimilarityClause* clause) {
  const SolvedBound bound = solve_for_distance(condition);
  if (bound.distance == nullptr) return false;
  Expr* const most = reinterpret_cast<Expr*>(makeConst(FLOAT8OID, -1, InvalidOid, sizeof(double),
                                                       Float8GetDatum(bound.most), false, true));
  Expr* const simple =
      reinterpret_cast<Expr*>(makeFuncExpr(F_FLOAT8LE, BOOLOID, list_make2(bound.distance, most),
                                           InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL));
  if ((!match_any_radius(simple, clause) && !match_column_distance(simple, clause)) ||
      tests_boxes(clause->test) || is_product(clause->test) ||
      (bound.holds_of_nan && clause->test.by->metric != Metric::kHamming))
    return false;
  clause->test.open = true;
  return true;
}

}  // namespace

bool match_similarity(Expr* condition, SimilarityClause* clause) {
  Expr* const tested = tested_for_truth(condition);
  if (!match_any_radius(tested, clause) && !match_solved(tested, clause)) return false;
  clause->condition = condition;
  return is_the_same_for_all_rows(clause->eps);
}

bool match_similarity(PlannerInfo* root, Expr* condition, Relids left, Relids right,
                      SimilarityClause* clause) {
  bool swapped;
  return match_similarity(condition, clause) && put_in_order(root, left, right, clause, &swapped);
}

namespace {

/// What a radius consists of.
struct RadiusTerms {
  PlannerInfo* root;
  Relids sides[2];
  Expr* of_rows[2];
  Expr* of_all;
  bool rounds;
};

/// Whether the cast to float8 is one of a sum of values of its own type.
bool casts_sum(Oid cast, Oid function) {
  return (cast == F_FLOAT8_FLOAT4 && function == F_FLOAT4PL) ||
         (cast == F_FLOAT8_INT2 && function == F_INT2PL) ||
         (cast == F_FLOAT8_INT4 && function == F_INT4PL) ||
         (cast == F_FLOAT8_INT8 && function == F_INT8PL);
}

bool add_radius(RadiusTerms* terms, Expr* radius);

/// Takes a term that raises no error, of one side's rows or the same for all.
bool add_term(RadiusTerms* terms, Expr* term) {
  if (term == nullptr) return false;
  Expr** place = is_the_same_for_all_rows(term) ? &terms->of_all : nullptr;
  for (int i = 0; i < 2; ++i)
    if (comes_from(terms->root, term, terms->sides[i])) place = &terms->of_rows[i];
  if (place == nullptr || *place != nullptr) return false;
  *place = term;
  return true;
}

/// Takes both terms of a sum.
bool add_sum(RadiusTerms* terms, Expr* radius) {
  Oid function;
  List* arguments;
  if (!as_call(radius, &function, &arguments)) return false;
  if (function == F_FLOAT8PL)
    return add_radius(terms, argument(arguments, 0)) && add_radius(terms, argument(arguments, 1));
  if (list_length(arguments) != 1) return false;
  const Oid cast = function;
  List* added;
  if (!as_call(argument(arguments, 0), &function, &added)) return false;
  if (!casts_sum(cast, function)) return false;
  // Large integers are rounded, too, when they become float8.
  terms->rounds = terms->rounds || function == F_FLOAT4PL || function == F_INT8PL;
  for (int i = 0; i < 2; ++i) {
    Expr* const term = cast_by(cast, argument(added, i));
    if (!add_term(terms, as_safe_term(terms->root, term)) && !add_sum(terms, term)) return false;
  }
  return true;
}

/// Takes the radius apart: at most one term of either side's rows, and one that is the same for
/// all. A term of rows raises no error; their sum may, but only where the condition would.
bool add_radius(RadiusTerms* terms, Expr* radius) {
  const bool whole = is_the_same_for_all_rows(radius) || cannot_raise(terms->root, radius);
  if (whole && add_term(terms, radius)) return true;
  RadiusTerms apart = *terms;
  if (add_sum(&apart, radius)) {
    *terms = apart;
    return true;
  }
  return add_term(terms, as_safe_radius(terms->root, radius));
}

}  // namespace

bool match_condition(Expr* condition, SimilarityClause* clause) {
  Expr* const tested = tested_for_truth(condition);
  if (!match_any_radius(tested, clause) && !match_column_distance(tested, clause) &&
      !match_solved(tested, clause))
    return false;
  clause->condition = condition;
  return true;
}

bool bind_to_sides(PlannerInfo* root, Relids left, Relids right, SimilarityClause* clause) {
  bool swapped;
  if (is_of_columns(clause->test)) return put_columns_in_order(root, left, right, clause);
  if (!put_in_order(root, left, right, clause, &swapped)) return false;
  if (is_the_same_for_all_rows(clause->eps)) return true;
  RadiusTerms terms = {root, {left, right}, {nullptr, nullptr}, nullptr, false};
  const bool safe = clause->safe_over != nullptr && cannot_raise(root, clause->safe_over);
  if (tests_boxes(clause->test) || is_product(clause->test) ||
      !(safe ? add_term(&terms, clause->eps) : add_radius(&terms, clause->eps)))
    return false;
  std::copy_n(terms.of_rows, 2, clause->radii);
  clause->rounds_radii = terms.rounds;
  clause->eps = terms.of_all != nullptr ? terms.of_all : zero();
  return true;
}

bool match_distance(PlannerInfo* root, Expr* expression, Relids left, Relids right,
                    SimilarityClause* clause, bool* swapped) {
  Oid function;
  List* arguments;
  *clause = {expression, nullptr, nullptr, nullptr, {}, {}, false};
  if (exprType(reinterpret_cast<Node*>(expression)) == INT8OID)
    clause->condition = cast_by(F_FLOAT8_INT8, expression);  // numbers of bits
  return as_measure(expression, &function, &arguments) &&
         find_test(function, arguments, true, clause) &&
         clause->test.by->metric != Metric::kJaccard &&  // engines do not sort by it
         put_in_order(root, left, right, clause, swapped);
}

bool is_nearest_first(const SortGroupClause& key) {
  return (key.sortop == Float8LessOperator || key.sortop == Int8LessOperator) && !key.nulls_first;
}

Expr* compared_value(Expr* distance, bool second) {
  Oid function;
  List* arguments;
  SimilarityClause clause = {};
  if (as_measure(distance, &function, &arguments)) take_values(arguments, &clause);
  return second ? clause.right : clause.left;
}

namespace {

/// Whether the expression is the clause's distance, as `test` measures it.
bool is_distance_of(Expr* expression, const SimilarityClause& clause, SimilarityTest* measures) {
  Oid function;
  List* arguments;
  SimilarityClause found = {};
  if (!as_call(expression, &function, &arguments) ||
      !find_test(function, arguments, true, &found) || found.test.type != clause.test.type ||
      found.test.by->metric == Metric::kHamming ||  // whose functions return integers
      found.test.by->compared != clause.test.by->compared ||
      found.test.by->metric != clause.test.by->metric)
    return false;
  *measures = found.test;
  return (equal(found.left, clause.left) && equal(found.right, clause.right)) ||
         (equal(found.left, clause.right) && equal(found.right, clause.left));
}

}  // namespace

bool is_distance_of(Expr* expression, const SimilarityClause& clause) {
  SimilarityTest test;
  return is_distance_of(expression, clause, &test);
}

bool bounds_distance(const SimilarityClause& radius, const SimilarityClause& distance) {
  return radius.test.type == distance.test.type &&
         radius.test.by->compared == distance.test.by->compared &&
         radius.test.by->metric == distance.test.by->metric && !tests_boxes(radius.test) &&
         equal(radius.left, distance.left) && equal(radius.right, distance.right);
}

bool measures_exactly(Expr* expression, const SimilarityClause& clause) {
  SimilarityTest test;
  return is_distance_of(expression, clause, &test) && is_exact(test);
}

}  // namespace gpujoin
