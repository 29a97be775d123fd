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

/// The arguments of such a call, or NIL.
List* arguments_of(Expr* value, const char* name) {
  while (IsA(value, RelabelType)) value = reinterpret_cast<RelabelType*>(value)->arg;
  Oid function;
  List* arguments;
  return as_call(value, &function, &arguments) && is_call_of(function, name) ? arguments : NIL;
}

Expr* number(double value) {
  return reinterpret_cast<Expr*>(makeConst(FLOAT8OID, -1, InvalidOid, sizeof(double),
                                           Float8GetDatum(value), false, FLOAT8PASSBYVAL));
}

Expr* call(Oid function, Oid result, List* arguments) {
  return reinterpret_cast<Expr*>(
      makeFuncExpr(function, result, arguments, InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL));
}

/// An immutable function of float8.
Expr* compute(Oid function, List* arguments) { return call(function, FLOAT8OID, arguments); }

/// Half the circumference in the extension's units, or NaN. Users may change the units, or the
/// Earth, by the function earth(); the longest straight line has this arc.
double half_circumference(Oid arc_of_line) {
  Expr* const line = number(get_float8_infinity());
  const Node* const arc = eval_const_expressions(
      nullptr, reinterpret_cast<Node*>(compute(arc_of_line, list_make1(line))));
  const Const* const found = reinterpret_cast<const Const*>(arc);
  return IsA(arc, Const) && !found->constisnull ? DatumGetFloat8(found->constvalue) : NAN;
}

CaseWhen* when(Oid comparison, Expr* one, Expr* other, Expr* result) {
  CaseWhen* const choice = makeNode(CaseWhen);
  choice->expr = call(comparison, BOOLOID, list_make2(one, other));
  choice->result = result;
  choice->location = -1;
  return choice;
}

/// A radius that is 0 for an arc that underflows might make, and infinite for one that no arc
/// exceeds: then the condition itself decides.
Expr* bounded_radius(Expr* arc, double most, Expr* radius) {
  constexpr double kLeast = 1e-100;
  CaseExpr* const choice = makeNode(CaseExpr);
  choice->casetype = FLOAT8OID;
  choice->args = list_make2(when(F_FLOAT8LT, arc, number(kLeast), number(0)),
                            when(F_FLOAT8GE, arc, number(most), number(get_float8_infinity())));
  choice->defresult = radius;
  choice->location = -1;
  return reinterpret_cast<Expr*>(eval_const_expressions(nullptr, reinterpret_cast<Node*>(choice)));
}

/// The straight line below an arc.
Expr* line_below(Expr* arc, double half_circumference) {
  const double diameter = 2 * half_circumference / M_PI;
  Expr* const angle = compute(F_FLOAT8DIV, list_make2(arc, number(diameter)));
  return compute(F_FLOAT8MUL, list_make2(number(diameter), compute(F_SIN, list_make1(angle))));
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
      !find_test(line, exprType(static_cast<Node*>(linitial(values))), 0, nullptr, true,
                 &distance) ||
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
  clause->eps = bounded_radius(
      arc, most,
      columns ? compute(F_FLOAT8DIV, list_make2(arc, number(most))) : line_below(arc, most));
  return true;
}

}  // namespace gpujoin
