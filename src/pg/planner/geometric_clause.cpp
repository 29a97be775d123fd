#include "pg/planner/geometric_clause.h"

#include "pg/planner/comparison.h"
#include "pg/planner/distance_call.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
}

namespace gpujoin {
namespace {

Oid type_of(Expr* value) { return exprType(reinterpret_cast<Node*>(value)); }

/// The middle and the radius of a circle; of a point itself and null.
struct Disc {
  Expr *middle, *radius;
};

Disc disc_of(Expr* value) {
  Oid function;
  List* arguments;
  if (type_of(value) == POINTOID) return {value, nullptr};
  if (as_call(value, &function, &arguments) && function == F_CIRCLE_POINT_FLOAT8)
    return {argument(arguments, 0), argument(arguments, 1)};
  return {make_call(F_CENTER_CIRCLE, POINTOID, list_make1(value)),
          make_call(F_RADIUS, FLOAT8OID, list_make1(value))};
}

/// Whether the values, points or circles, are nearer than their radii together. PostgreSQL adds
/// EPSILON to some of these.
bool match_discs(List* arguments, SimilarityClause* clause) {
  constexpr double kSlack = 2e-6;
  const Disc one = disc_of(argument(arguments, 0)), other = disc_of(argument(arguments, 1));
  if (!find_test(F_POINT_DISTANCE, list_make2(one.middle, other.middle), TestUse::kMeasure, clause))
    return false;
  clause->eps = float8_constant(kSlack);
  for (Expr* const radius : {one.radius, other.radius})
    if (radius != nullptr)
      clause->eps = make_call(F_FLOAT8PL, FLOAT8OID, list_make2(clause->eps, radius));
  clause->eps = reinterpret_cast<Expr*>(
      eval_const_expressions(nullptr, reinterpret_cast<Node*>(clause->eps)));
  clause->test.open = true;
  return true;
}

/// The box around a value.
Expr* box_of(Expr* value) {
  switch (type_of(value)) {
    case POINTOID:
      return make_call(F_BOX_POINT, BOXOID, list_make1(value));
    case POLYGONOID:
      return make_call(F_BOX_POLYGON, BOXOID, list_make1(value));
    default:
      return value;
  }
}

bool match_boxes(List* arguments, SimilarityClause* clause) {
  List* const boxes = list_make2(box_of(argument(arguments, 0)), box_of(argument(arguments, 1)));
  if (!find_test(F_BOX_OVERLAP, boxes, TestUse::kTest, clause)) return false;
  clause->eps = float8_constant(0);
  clause->test.open = clause->test.of_nan = true;  // to a polygon NaN may lie inside
  return true;
}

}  // namespace

bool match_geometric(Oid function, List* arguments, SimilarityClause* clause) {
  switch (function) {
    case F_PT_CONTAINED_CIRCLE:
    case F_CIRCLE_CONTAIN_PT:
    case F_CIRCLE_OVERLAP:
    case F_CIRCLE_CONTAIN:
    case F_CIRCLE_CONTAINED:
      return match_discs(arguments, clause);
    case F_ON_PB:
    case F_BOX_CONTAIN_PT:
    case F_BOX_CONTAIN:
    case F_BOX_CONTAINED:
    case F_POLY_CONTAIN_PT:
    case F_PT_CONTAINED_POLY:
    case F_POLY_CONTAIN:
    case F_POLY_CONTAINED:
    case F_POLY_OVERLAP:
      return match_boxes(arguments, clause);
    default:
      return false;
  }
}

}  // namespace gpujoin
