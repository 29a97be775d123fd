#include "pg/planner/earth_clause.h"

#include "pg/planner/comparison.h"
#include "pg/types/extension_object.h"
#include "pg/types/sphere_tests.h"

extern "C" {
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_func.h"
#include "utils/acl.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

constexpr char kEarth[] = "earthdistance";

/// Whether a call is of the extension's function of that name.
bool is_call_of(Oid function, const char* name) {
  const char* const called = get_func_name(function);
  return called != nullptr && strcmp(called, name) == 0 && is_sql_function_of(function, kEarth);
}

Expr* without_relabels(Expr* value) {
  while (IsA(value, RelabelType)) value = reinterpret_cast<RelabelType*>(value)->arg;
  return value;
}

/// The function of a call, or InvalidOid.
Oid called(Expr* value) {
  Oid function;
  List* arguments;
  return as_call(without_relabels(value), &function, &arguments) ? function : InvalidOid;
}

/// The arguments of such a call, or NIL.
List* arguments_of(Expr* value, const char* name) {
  value = without_relabels(value);
  Oid function;
  List* arguments;
  return as_call(value, &function, &arguments) && is_call_of(function, name) ? arguments : NIL;
}

/// An immutable function of float8.
Expr* compute(Oid function, List* arguments) { return make_call(function, FLOAT8OID, arguments); }

/// Half the circumference in the extension's units, or NaN. Users may change the units, or the
/// Earth, by the function earth(); the longest straight line has this arc.
double half_circumference(Oid arc_of_line) {
  Expr* const line = float8_constant(get_float8_infinity());
  const Node* const arc = eval_const_expressions(
      nullptr, reinterpret_cast<Node*>(compute(arc_of_line, list_make1(line))));
  const Const* const found = reinterpret_cast<const Const*>(arc);
  return IsA(arc, Const) && !found->constisnull ? DatumGetFloat8(found->constvalue) : NAN;
}

CaseWhen* when(Oid comparison, Expr* one, double other, double result) {
  return make_when(make_call(comparison, BOOLOID, list_make2(one, float8_constant(other))),
                   float8_constant(result));
}

/// A radius that is 0 for an arc that underflows might make, and infinite for one that no arc
/// exceeds: then the condition itself decides.
Expr* bounded_radius(Expr* arc, double most, Expr* radius) {
  constexpr double kLeast = 1e-100;
  Expr* const choice = make_case(list_make2(when(F_FLOAT8LT, arc, kLeast, 0),
                                            when(F_FLOAT8GE, arc, most, get_float8_infinity())),
                                 radius);
  return reinterpret_cast<Expr*>(eval_const_expressions(nullptr, reinterpret_cast<Node*>(choice)));
}

/// The straight line below an arc.
Expr* line_below(Expr* arc, double half_circumference) {
  const double diameter = 2 * half_circumference / M_PI;
  Expr* const angle = compute(F_FLOAT8DIV, list_make2(arc, float8_constant(diameter)));
  return compute(F_FLOAT8MUL,
                 list_make2(float8_constant(diameter), compute(F_SIN, list_make1(angle))));
}

/// The Earth's radius in the extension's units, of the extension that has the function
/// ll_to_earth(); NaN where it is no constant.
double earth_radius(Oid ll_to_earth) {
  List* const name = list_make2(makeString(get_namespace_name(get_func_namespace(ll_to_earth))),
                                makeString(pstrdup("earth")));
  const Oid function = LookupFuncName(name, 0, nullptr, true);
  if (!OidIsValid(function) || !is_call_of(function, "earth")) return NAN;
  const Node* const radius =
      eval_const_expressions(nullptr, reinterpret_cast<Node*>(compute(function, NIL)));
  const Const* const found = reinterpret_cast<const Const*>(radius);
  return IsA(radius, Const) && !found->constisnull ? DatumGetFloat8(found->constvalue) : NAN;
}

/// Whether it is cube's function of that name.
bool is_of_cube(Oid function, const char* name) {
  const char* const called = get_func_name(function);
  return called != nullptr && strcmp(called, name) == 0 &&
         is_compiled_function_of(function, "cube");
}

bool is_three(const Expr* number) {
  const Const* const constant = reinterpret_cast<const Const*>(number);
  return IsA(number, Const) && constant->consttype == INT4OID && !constant->constisnull &&
         DatumGetInt32(constant->constvalue) == 3;
}

/// The array of a longitude and a latitude from the arguments of ll_to_earth(latitude, longitude).
Expr* degrees_of(List* arguments) {
  return as_array(list_make2(lsecond(arguments), linitial(arguments)));
}

}  // namespace

bool match_earth_distance(Oid function, List* arguments, SimilarityClause* clause) {
  if (list_length(arguments) != 1 || !is_call_of(function, "sec_to_gc") ||
      function_aclcheck(function, GetUserId()) != ACLCHECK_OK)
    return false;
  Oid line;
  List* values;
  SimilarityTest distance;
  if (!as_call(argument(arguments, 0), &line, &values) || list_length(values) != 2 ||
      !find_test(line, exprType(static_cast<Node*>(linitial(values))), 0, nullptr,
                 TestUse::kMeasure, &distance) ||
      strcmp(distance.by->name, "cube_distance") != 0)
    return false;
  const double most = half_circumference(function);
  if (!(most > 0 && std::isfinite(most))) return false;
  List* const left = arguments_of(argument(values, 0), "ll_to_earth");
  List* const right = arguments_of(argument(values, 1), "ll_to_earth");
  const bool columns = left != NIL && right != NIL;
  clause->left = columns ? degrees_of(left) : argument(values, 0);
  clause->right = columns ? degrees_of(right) : argument(values, 1);
  clause->test = columns ? half_turns_test() : earth_chord_test();
  Expr* const arc = clause->eps;
  clause->safe_over = arc;
  clause->eps =
      bounded_radius(arc, most,
                     columns ? compute(F_FLOAT8DIV, list_make2(arc, float8_constant(most)))
                             : line_below(arc, most));
  return true;
}

bool match_earth_box(Oid function, List* arguments, SimilarityClause* clause) {
  const bool box_first = is_of_cube(function, "cube_contains");
  if (!box_first && !is_of_cube(function, "cube_contained")) return false;
  Oid enlarge;
  List* box;
  if (!as_call(argument(arguments, box_first ? 0 : 1), &enlarge, &box) ||
      !is_of_cube(enlarge, "cube_enlarge") || !is_three(argument(box, 2)))
    return false;
  Expr *const middle = argument(box, 0), *const other = argument(arguments, box_first ? 1 : 0);
  List *const left = arguments_of(middle, "ll_to_earth"), *const right =
                                                              arguments_of(other, "ll_to_earth");
  if (left == NIL || right == NIL) return false;
  const double radius = earth_radius(called(middle));
  if (!(radius > 0 && std::isfinite(radius))) return false;
  clause->left = degrees_of(left);
  clause->right = degrees_of(right);
  clause->test = earth_box_test();
  // A box that would be smaller than nothing is its middle, rounded.
  Expr* const size = argument(box, 1);
  Expr* const reach = compute(F_FLOAT8ABS, list_make1(size));
  MinMaxExpr* const wider = makeNode(MinMaxExpr);
  wider->minmaxtype = FLOAT8OID;
  wider->op = IS_GREATEST;
  wider->args = list_make2(size, float8_constant(0));
  wider->location = -1;
  clause->safe_over = size;
  clause->eps = bounded_radius(reach, 2 * radius,
                               compute(F_FLOAT8DIV, list_make2(reinterpret_cast<Expr*>(wider),
                                                               float8_constant(2 * radius))));
  return true;
}

}  // namespace gpujoin
