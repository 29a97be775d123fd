#include "pg/planner/sky_clause.h"

#include "pg/planner/comparison.h"
#include "pg/types/extension_object.h"
#include "pg/types/sphere_tests.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

/// The r of `pow(sin(radians(r) / 2), 2)`, or null.
Expr* radius_of(Expr* haversine) {
  Oid function;
  List* arguments;
  const auto is_number = [&](int i, double number) {
    const Const* const constant = reinterpret_cast<const Const*>(argument(arguments, i));
    return IsA(constant, Const) && constant->consttype == FLOAT8OID && !constant->constisnull &&
           DatumGetFloat8(constant->constvalue) == number;
  };
  if (!as_call(haversine, &function, &arguments) || list_length(arguments) != 2 ||
      (function != F_POW_FLOAT8_FLOAT8 && function != F_POWER_FLOAT8_FLOAT8 &&
       function != F_DPOW) ||
      !is_number(1, 2))
    return nullptr;
  if (!as_call(argument(arguments, 0), &function, &arguments) || function != F_SIN) return nullptr;
  if (!as_call(argument(arguments, 0), &function, &arguments) || function != F_FLOAT8DIV ||
      !is_number(1, 2))
    return nullptr;
  const bool known =
      as_call(argument(arguments, 0), &function, &arguments) && function == F_RADIANS;
  return known ? argument(arguments, 0) : nullptr;
}

/// Whether it is pgsphere's function of that name.
bool is_of_pgsphere(Oid function, const char* name) {
  const char* const known = get_func_name(function);
  return known != nullptr && strcmp(known, name) == 0 &&
         is_compiled_function_of(function, "pg_sphere");
}

}  // namespace

void take_angle(SimilarityClause* clause) {
  if (!tests_haversines(clause->test) || is_the_same_for_all_rows(clause->eps)) return;
  if (Expr* const radius = radius_of(clause->eps)) {
    clause->eps = radius;
    clause->test = radius_test();
  }
}

bool match_circle(Oid function, List* arguments, SimilarityClause* clause) {
  const bool point_first = is_of_pgsphere(function, "spoint_contained_by_circle");
  if (!point_first && !is_of_pgsphere(function, "spoint_contained_by_circle_com")) return false;
  Oid make_circle;
  List* circle;
  if (!as_call(argument(arguments, point_first ? 1 : 0), &make_circle, &circle) ||
      list_length(circle) != 2 || !is_of_pgsphere(make_circle, "scircle"))
    return false;
  clause->test = circle_test();
  clause->left = argument(arguments, point_first ? 0 : 1);
  clause->right = argument(circle, 0);
  clause->eps = as_float8(argument(circle, 1));
  return is_type(*clause->test.type, exprType(reinterpret_cast<Node*>(clause->left))) &&
         is_type(*clause->test.type, exprType(reinterpret_cast<Node*>(clause->right)));
}

}  // namespace gpujoin
