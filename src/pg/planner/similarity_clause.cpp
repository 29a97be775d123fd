#include "pg/planner/similarity_clause.h"

#include "pg/planner/column_distance.h"
#include "pg/planner/comparison.h"
#include "pg/planner/distance_call.h"
#include "pg/planner/earth_clause.h"
#include "pg/planner/great_circle_formula.h"
#include "pg/planner/implied_distance.h"
#include "pg/planner/radius_terms.h"
#include "pg/planner/safe_expression.h"
#include "pg/planner/safe_radius.h"
#include "pg/types/column_tests.h"
#include "pg/types/product_test.h"

extern "C" {
#include "catalog/pg_operator_d.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
}

namespace gpujoin {

bool is_the_same_for_all_rows(Expr* value) {
  Node* const node = reinterpret_cast<Node*>(value);
  return !contain_var_clause(node) && !contain_volatile_functions(node) && !contain_subplans(node);
}

namespace {

bool find_outer_value(Node* node, void*) {
  if (node == nullptr) return false;
  if (IsA(node, Param)) return reinterpret_cast<Param*>(node)->paramkind == PARAM_EXEC;
  return walk_expression(node, find_outer_value, nullptr);
}

}  // namespace

bool uses_outer_value(Node* expression) { return find_outer_value(expression, nullptr); }

bool comes_from(PlannerInfo* root, Expr* value, Relids relations) {
  Node* const node = reinterpret_cast<Node*>(value);
  if (contain_volatile_functions(node) || contain_subplans(node)) return false;
  const Relids used = pull_varnos(root, node);
  return bms_is_empty(used) == bms_is_empty(relations) && bms_is_subset(used, relations);
}

namespace {

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
bool put_in_order(PlannerInfo* root, Relids left, Relids right, SimilarityClause* clause) {
  if (is_of_columns(clause->test)) return put_columns_in_order(root, left, right, clause);
  if (comes_from(root, clause->left, right)) std::swap(clause->left, clause->right);
  return comes_from(root, clause->left, left) && comes_from(root, clause->right, right);
}

}  // namespace

bool are_of_sides(PlannerInfo* root, Relids left, Relids right, SimilarityClause clause) {
  return put_in_order(root, left, right, &clause);
}

bool bind_to_sides(PlannerInfo* root, Relids left, Relids right, SimilarityClause* clause) {
  const bool same = is_the_same_for_all_rows(clause->eps);
  if (same && clause->test.open && !cannot_raise(root, clause->eps)) {
    // What arithmetic makes of a radius must not raise an error that the condition would not.
    clause->eps = as_safe_radius(root, clause->eps);
    if (clause->eps == nullptr) return false;
  }
  if (!put_in_order(root, left, right, clause)) return false;
  if (same) return true;
  RadiusTerms terms = {root, {left, right}, {nullptr, nullptr}, nullptr, false};
  if (tests_boxes(clause->test) || is_product(clause->test)) return false;
  if (clause->safe_over == nullptr) {
    if (!add_radius(&terms, clause->eps)) {
      if (!bound_radius(&terms, clause->eps)) return false;
      clause->test.open = true;
    }
  } else {
    Expr* const over = clause->safe_over;
    Expr* const safe = cannot_raise(root, over) ? over : as_safe_radius(root, over);
    if (safe == nullptr) return false;
    if (safe != over) clause->eps = with_replaced(clause->eps, over, safe);
    if (!add_term(&terms, clause->eps)) return false;
  }
  std::copy_n(terms.of_rows, 2, clause->radii);
  clause->rounds_radii = terms.rounds;
  clause->eps = terms.of_all != nullptr ? terms.of_all : float8_constant(0);
  return true;
}

bool match_distance(PlannerInfo* root, Expr* expression, Relids left, Relids right,
                    SimilarityClause* clause) {
  Oid function;
  List* arguments;
  double times;
  *clause = {expression, nullptr, nullptr, nullptr, {}, {}, false};
  if (exprType(reinterpret_cast<Node*>(expression)) == INT8OID)
    clause->condition = cast_by(F_FLOAT8_INT8, expression);  // numbers of bits
  clause->eps = float8_constant(1);  // any, for what is known by comparing with one
  const bool calls = as_measure(expression, &function, &arguments);
  return ((calls && find_test(function, arguments, TestUse::kMeasure, clause)) ||
          (calls && match_earth_distance(function, arguments, clause)) ||
          match_column_distance(expression, float8_constant(0), clause) ||
          match_great_circle(expression, clause, &times)) &&
         !clause->test.open && put_in_order(root, left, right, clause);
}

bool is_nearest_first(const SortGroupClause& key) {
  return (key.sortop == Float8LessOperator || key.sortop == Int8LessOperator) && !key.nulls_first;
}

namespace {

/// Whether the expression is the clause's distance, as `test` measures it.
bool is_distance_of(Expr* expression, const SimilarityClause& clause, SimilarityTest* measures) {
  Oid function;
  List* arguments;
  SimilarityClause found = {};
  if (!as_call(expression, &function, &arguments) ||
      !find_test(function, arguments, TestUse::kMeasure, &found) ||
      found.test.type != clause.test.type ||
      found.test.by->metric == Metric::kHamming ||  // whose functions return integers
      found.test.open || found.test.by->compared != clause.test.by->compared ||
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

bool match_radius(PlannerInfo* root, Expr* condition, const SimilarityClause& distance, Relids left,
                  Relids right, SimilarityClause* radius) {
  if (!implied_distance(condition, radius) || !bind_to_sides(root, left, right, radius))
    return false;
  const SimilarityTest& test = radius->test;
  return test.type == distance.test.type && test.by->compared == distance.test.by->compared &&
         test.by->metric == distance.test.by->metric && !tests_boxes(test) && !test.of_null &&
         !(test.of_nan && test.by->metric == Metric::kCosine) &&
         equal(radius->left, distance.left) && equal(radius->right, distance.right);
}

bool measures_exactly(Expr* expression, const SimilarityClause& clause) {
  SimilarityTest test;
  return is_distance_of(expression, clause, &test) && is_exact(test);
}

}  // namespace gpujoin
