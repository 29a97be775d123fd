#include "pg/planner/similarity_clause.h"

#include "pg/types/extension_object.h"

extern "C" {
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace gpujoin {
namespace {

/// A function of an extension, by the names of the extension and of itself, and by the type of the
/// two values that it compares: one of PostgreSQL's own, or the extension's of that name.
struct KnownFunction {
  const char* extension;
  const char* function;
  Oid core_type;  ///< InvalidOid: the extension's
  const char* type;
  SimilarityTest test;  ///< of kWithin the radius is the third argument, and the last one
};

using enum PointKind;
using enum Metric;
using enum TestForm;

constexpr KnownFunction kKnownFunctions[] = {
    {"gpujoin", "gpu_distance", FLOAT4ARRAYOID, nullptr, {kFloat4Array, kL2, kDistance, false}},
    {"gpujoin", "gpu_distance", FLOAT8ARRAYOID, nullptr, {kFloat8Array, kL2, kDistance, false}},
    {"gpujoin", "gpu_within", FLOAT4ARRAYOID, nullptr, {kFloat4Array, kL2, kWithin, false}},
    {"gpujoin", "gpu_within", FLOAT8ARRAYOID, nullptr, {kFloat8Array, kL2, kWithin, false}},
    {"gpujoin", "gpu_within", POINTOID, nullptr, {kPoint, kL2, kWithin, false}},
    {"cube", "cube_distance", InvalidOid, "cube", {kCube, kL2, kDistance, false}},
    {"cube", "distance_taxicab", InvalidOid, "cube", {kCube, kL1, kDistance, false}},
    {"cube", "distance_chebyshev", InvalidOid, "cube", {kCube, kLInf, kDistance, false}},
    {"cube", "cube_overlap", InvalidOid, "cube", {kCube, kLInf, kOverlap, false}},
    {"vector", "l2_distance", InvalidOid, "vector", {kVector, kL2, kDistance, false}},
    {"vector", "l1_distance", InvalidOid, "vector", {kVector, kL1, kDistance, false}},
    {"vector", "cosine_distance", InvalidOid, "vector", {kVectorDirection, kL2, kDistance, false}},
    {"vector", "l2_distance", InvalidOid, "halfvec", {kHalfvec, kL2, kDistance, false}},
    {"vector", "l1_distance", InvalidOid, "halfvec", {kHalfvec, kL1, kDistance, false}},
    {"vector",
     "cosine_distance",
     InvalidOid,
     "halfvec",
     {kHalfvecDirection, kL2, kDistance, false}},
    {"postgis", "st_dwithin", InvalidOid, "geometry", {kGeometry, kL2, kWithin, false}},
    {"postgis", "geometry_overlaps", InvalidOid, "geometry", {kGeometry, kLInf, kOverlap, false}},
    {"postgis", "st_intersects", InvalidOid, "geometry", {kGeometry, kLInf, kTouch, false}},
};

/// How `distance OP eps` reads, by the function behind the operator.
struct Comparison {
  Oid function;
  bool distance_first;
  bool strict;
};

constexpr Comparison kComparisons[] = {{F_FLOAT8LE, true, false},   {F_FLOAT8LT, true, true},
                                       {F_FLOAT8GE, false, false},  {F_FLOAT8GT, false, true},
                                       {F_FLOAT84LE, true, false},  {F_FLOAT84LT, true, true},
                                       {F_FLOAT48GE, false, false}, {F_FLOAT48GT, false, true}};

bool compares(const KnownFunction& known, Oid type) {
  if (OidIsValid(known.core_type)) return type == known.core_type;
  return is_base_type_of(type, known.extension, known.type);
}

/// What a call of the function tests, or with `distance` measures; null when it is none that is
/// known.
const SimilarityTest* find_test(Oid function, List* arguments, bool distance) {
  static constexpr SimilarityTest kPointDistance = {kPoint, kL2, kDistance, false};
  static constexpr SimilarityTest kBoxOverlap = {kBox, kLInf, kOverlap, false};
  if (function == F_POINT_DISTANCE) return distance ? &kPointDistance : nullptr;
  if (function == F_BOX_OVERLAP) return distance ? nullptr : &kBoxOverlap;
  if (list_length(arguments) < 2) return nullptr;
  const Oid type = exprType(static_cast<const Node*>(linitial(arguments)));
  if (type != exprType(static_cast<const Node*>(lsecond(arguments)))) return nullptr;
  const char* const name = get_func_name(function);
  if (name == nullptr) return nullptr;
  for (const KnownFunction& known : kKnownFunctions) {
    const TestForm form = known.test.form;
    if ((form == kDistance) == distance && strcmp(known.function, name) == 0 &&
        list_length(arguments) == (form == kWithin ? 3 : 2) && compares(known, type) &&
        is_compiled_function_of(function, known.extension))
      return &known.test;
  }
  return nullptr;
}

/// A function call or an operator, which is one too.
bool as_call(Expr* expression, Oid* function, List** arguments) {
  if (IsA(expression, OpExpr)) {
    OpExpr* const operation = reinterpret_cast<OpExpr*>(expression);
    set_opfuncid(operation);
    *function = operation->opfuncid;
    *arguments = operation->args;
    return true;
  }
  if (!IsA(expression, FuncExpr)) return false;
  *function = reinterpret_cast<FuncExpr*>(expression)->funcid;
  *arguments = reinterpret_cast<FuncExpr*>(expression)->args;
  return true;
}

Expr* argument(List* arguments, int number) {
  return static_cast<Expr*>(list_nth(arguments, number));
}

Expr* as_float8(Expr* eps) {
  const Oid type = exprType(reinterpret_cast<Node*>(eps));
  if (type == FLOAT8OID) return eps;
  if (type != FLOAT4OID) return nullptr;
  return reinterpret_cast<Expr*>(makeFuncExpr(F_FLOAT8_FLOAT4, FLOAT8OID, list_make1(eps),
                                              InvalidOid, InvalidOid, COERCE_IMPLICIT_CAST));
}

Expr* zero() {
  return reinterpret_cast<Expr*>(
      makeConst(FLOAT8OID, -1, InvalidOid, sizeof(double), Float8GetDatum(0), false, true));
}

bool is_the_same_for_all_rows(Expr* value) {
  Node* const node = reinterpret_cast<Node*>(value);
  return !contain_var_clause(node) && !contain_volatile_functions(node) && !contain_subplans(node);
}

}  // namespace

bool comes_from(PlannerInfo* root, Expr* value, Relids relations) {
  Node* const node = reinterpret_cast<Node*>(value);
  if (contain_volatile_functions(node) || contain_subplans(node)) return false;
  const Relids used = pull_varnos(root, node);
  return !bms_is_empty(used) && bms_is_subset(used, relations);
}

bool match_similarity(Expr* condition, SimilarityClause* clause) {
  Oid function;
  List* arguments;
  if (!as_call(condition, &function, &arguments)) return false;
  *clause = {condition, nullptr, nullptr, nullptr, {}};
  const SimilarityTest* test = nullptr;
  bool strict = false;
  for (const Comparison& comparison : kComparisons) {
    if (comparison.function != function) continue;
    Expr* const distance = argument(arguments, comparison.distance_first ? 0 : 1);
    clause->eps = argument(arguments, comparison.distance_first ? 1 : 0);
    strict = comparison.strict;
    if (!as_call(distance, &function, &arguments)) return false;
    test = find_test(function, arguments, true);
    break;
  }
  if (clause->eps == nullptr) {
    test = find_test(function, arguments, false);
    if (test != nullptr) clause->eps = test->form == kWithin ? argument(arguments, 2) : zero();
  }
  if (test == nullptr) return false;
  clause->test = *test;
  clause->test.strict = strict;
  clause->eps = as_float8(clause->eps);
  clause->left = argument(arguments, 0);
  clause->right = argument(arguments, 1);
  return clause->eps != nullptr && is_the_same_for_all_rows(clause->eps);
}

bool match_similarity(PlannerInfo* root, Expr* condition, Relids left, Relids right,
                      SimilarityClause* clause) {
  if (!match_similarity(condition, clause)) return false;
  if (comes_from(root, clause->left, right)) {
    Expr* const other = clause->left;
    clause->left = clause->right;
    clause->right = other;
  }
  return comes_from(root, clause->left, left) && comes_from(root, clause->right, right);
}

bool is_distance_of(Expr* expression, const SimilarityClause& clause) {
  Oid function;
  List* arguments;
  if (!as_call(expression, &function, &arguments)) return false;
  const SimilarityTest* const test = find_test(function, arguments, true);
  if (test == nullptr || tests_boxes(clause.test) || test->kind != clause.test.kind ||
      test->metric != clause.test.metric)
    return false;
  const Expr *one = argument(arguments, 0), *other = argument(arguments, 1);
  return (equal(one, clause.left) && equal(other, clause.right)) ||
         (equal(one, clause.right) && equal(other, clause.left));
}

}  // namespace gpujoin
