#include "pg/planner/radius_terms.h"

#include "pg/planner/comparison.h"
#include "pg/planner/distance_call.h"
#include "pg/planner/safe_expression.h"
#include "pg/planner/safe_radius.h"
#include "pg/planner/similarity_clause.h"

extern "C" {
#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
}

namespace gpujoin {
namespace {

/// Where a term belongs; null: to neither side alone.
Expr** place_of(RadiusTerms* terms, Expr* term) {
  if (is_the_same_for_all_rows(term)) return &terms->of_all;
  for (int i = 0; i < 2; ++i)
    if (comes_from(terms->root, term, terms->sides[i])) return &terms->of_rows[i];
  return nullptr;
}

/// Whether the cast to float8 is one of a sum of values of its own type.
bool casts_sum(Oid cast, Oid function) {
  return (cast == F_FLOAT8_FLOAT4 && function == F_FLOAT4PL) ||
         (cast == F_FLOAT8_INT2 && function == F_INT2PL) ||
         (cast == F_FLOAT8_INT4 && function == F_INT4PL) ||
         (cast == F_FLOAT8_INT8 && function == F_INT8PL);
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

}  // namespace

bool add_term(RadiusTerms* terms, Expr* term) {
  Expr** const place = term != nullptr ? place_of(terms, term) : nullptr;
  if (place == nullptr || *place != nullptr) return false;
  *place = term;
  return true;
}

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

namespace {

/// Adds a multiple of the magnitude of a number of one side. NULL counts as 0, for greatest() and
/// its like pass over it.
bool add_magnitude(RadiusTerms* terms, Expr* number, double times) {
  constexpr double kRounding = 1 + 1e-6;  // of sums in single precision, too
  Expr** const place = place_of(terms, number);
  Expr* const value = exprType(reinterpret_cast<Node*>(number)) == NUMERICOID
                          ? as_radius(cast_by(F_FLOAT8_NUMERIC, number))
                          : as_radius(number);
  if (place == nullptr || value == nullptr) return false;
  Expr* const size = make_call(F_FLOAT8ABS, FLOAT8OID, list_make1(value));
  Expr* const scaled = make_call(F_FLOAT8MUL, FLOAT8OID,
                                 list_make2(size, float8_constant(std::fabs(times) * kRounding)));
  Expr* const safe = as_safe_radius(terms->root, scaled);
  if (safe == nullptr && !IsA(value, Const)) return false;
  Expr* const term = or_default(safe != nullptr ? safe : scaled, 0);
  *place = *place == nullptr ? term : make_call(F_FLOAT8PL, FLOAT8OID, list_make2(*place, term));
  return true;
}

bool add_magnitudes(RadiusTerms* terms, Expr* number, double times);

/// Adds the root of a sum of squares, which is at most the sum of what is squared.
bool add_root(RadiusTerms* terms, Expr* squares, double times) {
  List* arguments = NIL;
  double number;
  switch (as_arithmetic(squares, &arguments)) {
    case Arithmetic::kSum:
      return add_root(terms, argument(arguments, 0), times) &&
             add_root(terms, argument(arguments, 1), times);
    case Arithmetic::kPower:
      return read_number(argument(arguments, 1), &number) && number == 2 &&
             add_magnitudes(terms, argument(arguments, 0), times);
    case Arithmetic::kProduct:
      if (equal(argument(arguments, 0), argument(arguments, 1)))
        return add_magnitudes(terms, argument(arguments, 0), times);
      for (int i = 0; i < 2; ++i)
        if (read_number(argument(arguments, i), &number) && number >= 0)
          return add_root(terms, argument(arguments, 1 - i), times * std::sqrt(number));
      return false;
    case Arithmetic::kCast:
      return add_root(terms, argument(arguments, 0), times);
    default:
      return read_number(squares, &number) && number >= 0 &&
             add_magnitude(terms, float8_constant(std::sqrt(number)), times);
  }
}

bool add_all(RadiusTerms* terms, const List* numbers, double times) {
  ListCell* cell;
  foreach (cell, numbers)
    if (!add_magnitudes(terms, static_cast<Expr*>(lfirst(cell)), times)) return false;
  return true;
}

/// Adds numbers whose magnitudes add up to no less than that of this one.
bool add_magnitudes(RadiusTerms* terms, Expr* number, double times) {
  if (place_of(terms, number) != nullptr && add_magnitude(terms, number, times)) return true;
  if (IsA(number, MinMaxExpr))
    return add_all(terms, reinterpret_cast<MinMaxExpr*>(number)->args, times);
  if (IsA(number, CoalesceExpr))
    return add_all(terms, reinterpret_cast<CoalesceExpr*>(number)->args, times);
  if (IsA(number, CaseExpr)) {
    const auto* const choice = reinterpret_cast<const CaseExpr*>(number);
    List* results = list_make1(choice->defresult);
    ListCell* cell;
    foreach (cell, choice->args) results = lappend(results, lfirst_node(CaseWhen, cell)->result);
    return add_all(terms, results, times);
  }
  Oid function;
  List* arguments = NIL;
  double constant;
  if (as_call(number, &function, &arguments) && casts_numeric(function))
    return add_all(terms, arguments, times);
  switch (as_arithmetic(number, &arguments)) {
    case Arithmetic::kSum:
    case Arithmetic::kDifference:
    case Arithmetic::kNegation:
    case Arithmetic::kMagnitude:
    case Arithmetic::kCast:
      return add_all(terms, arguments, times);
    case Arithmetic::kRoot:
      return add_root(terms, argument(arguments, 0), times);
    case Arithmetic::kProduct:
      for (int i = 0; i < 2; ++i)
        if (read_number(argument(arguments, i), &constant))
          return add_magnitudes(terms, argument(arguments, 1 - i), times * constant);
      return false;
    case Arithmetic::kQuotient:
      return read_number(argument(arguments, 1), &constant) && constant != 0 &&
             add_magnitudes(terms, argument(arguments, 0), times / constant);
    default:
      return false;
  }
}

}  // namespace

bool bound_radius(RadiusTerms* terms, Expr* radius) {
  RadiusTerms found = {terms->root, {terms->sides[0], terms->sides[1]}, {}, nullptr, false};
  if (!add_magnitudes(&found, radius, 1)) return false;
  *terms = found;
  return true;
}

}  // namespace gpujoin
