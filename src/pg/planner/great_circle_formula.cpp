#include "pg/planner/great_circle_formula.h"

#include <random>

#include "pg/geometry/great_circle.h"
#include "pg/planner/comparison.h"
#include "pg/types/sphere_tests.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
}

namespace gpujoin {
namespace {

constexpr int kColumns = 4;

/// A formula, and numbers to evaluate it for.
struct Formula {
  List* columns;  ///< what it is computed of, each once
  bool of_null;   ///< it has functions that pass over NULL
  double values[kColumns];

  double value_of(Expr* expression);
  double compute(Arithmetic arithmetic, List* arguments);
};

/// The number that a cast between numbers is made of, or the expression itself.
Expr* without_casts(Expr* expression) {
  Oid function;
  List* arguments;
  while (true) {
    if (IsA(expression, RelabelType))
      expression = reinterpret_cast<RelabelType*>(expression)->arg;
    else if (as_call(expression, &function, &arguments) &&
             (arithmetic_of(function) == Arithmetic::kCast || casts_numeric(function)))
      expression = argument(arguments, 0);
    else
      return expression;
  }
}

double Formula::compute(Arithmetic arithmetic, List* arguments) {
  const double x = arguments != NIL ? value_of(argument(arguments, 0)) : 0;
  const double y = list_length(arguments) == 2 ? value_of(argument(arguments, 1)) : 0;
  switch (arithmetic) {
    case Arithmetic::kSum:
      return x + y;
    case Arithmetic::kDifference:
      return x - y;
    case Arithmetic::kProduct:
      return x * y;
    case Arithmetic::kQuotient:
      return x / y;
    case Arithmetic::kNegation:
      return -x;
    case Arithmetic::kPower:
      return std::pow(x, y);
    case Arithmetic::kRoot:
      return std::sqrt(x);
    case Arithmetic::kSine:
      return std::sin(x);
    case Arithmetic::kCosine:
      return std::cos(x);
    case Arithmetic::kArcSine:
      return std::asin(x);
    case Arithmetic::kArcCosine:
      return std::acos(x);
    case Arithmetic::kArcTangent:
      return std::atan2(x, y);
    case Arithmetic::kRadians:
      return x * (M_PI / 180);
    case Arithmetic::kDegrees:
      return x * (180 / M_PI);
    case Arithmetic::kPi:
      return M_PI;
    default:
      return NAN;
  }
}

/// The formula's value where its columns have the values; NaN where it has none, or another
/// function.
double Formula::value_of(Expr* expression) {
  expression = without_casts(expression);
  double number;
  if (read_number(expression, &number)) return number;
  if (IsA(expression, MinMaxExpr)) {
    const auto* const choice = reinterpret_cast<const MinMaxExpr*>(expression);
    of_null = true;
    if (list_length(choice->args) != 2) return NAN;
    const double x = value_of(argument(choice->args, 0)), y = value_of(argument(choice->args, 1));
    return choice->op == IS_LEAST ? std::fmin(x, y) : std::fmax(x, y);
  }
  List* arguments = NIL;
  const Arithmetic arithmetic = as_arithmetic(expression, &arguments);
  if (arithmetic != Arithmetic::kNone)
    return exprType(reinterpret_cast<Node*>(expression)) == FLOAT4OID
               ? NAN
               : compute(arithmetic, arguments);
  columns = list_append_unique(columns, expression);
  for (int i = 0; i < list_length(columns); ++i)
    if (i < kColumns && equal(list_nth(columns, i), expression)) return values[i];
  return NAN;
}

/// The angle between two places, each a longitude and a latitude.
double angle_between(const double* degrees) {
  double places[2][3], cosine = 0;
  for (int i = 0; i < 2; ++i) set_place(degrees[2 * i], degrees[2 * i + 1], places[i]);
  for (int d = 0; d < 3; ++d) cosine += places[0][d] * places[1][d];
  return std::acos(cosine / (kEarthRadius * kEarthRadius));
}

/// Returns true if the formula is the angle between two places, times a factor. `order` says which
/// columns are the longitude and the latitude of the first place and of the second one. If `fixed`
/// is set, it is the second place.
bool agrees(Formula* formula, Expr* expression, const int* order, const double* fixed,
            double* times) {
  constexpr int kTrials = 24;
  constexpr double kMost[2] = {180, 85}, kError = 1e-8;
  std::minstd_rand random(1);
  for (int trial = 0; trial < kTrials; ++trial) {
    double degrees[kColumns];
    for (int i = 0; i < kColumns; ++i) {
      degrees[i] = std::uniform_real_distribution<double>(-kMost[i % 2], kMost[i % 2])(random);
      if (fixed != nullptr && i >= 2)
        degrees[i] = fixed[i - 2];
      else
        formula->values[order[i]] = degrees[i];
    }
    const double factor = formula->value_of(expression) / angle_between(degrees);
    if (trial == 0) *times = factor;
    if (!(std::fabs(factor - *times) <= kError * std::fabs(*times))) return false;
  }
  return *times > 0;
}

double determinant(const double* a, const double* b, const double* c) {
  return a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0]) +
         a[2] * (b[0] * c[1] - b[1] * c[0]);
}

/// Sets *place to the longitude and the latitude of the place that the formula measures angles, or
/// halves of them, to. Its two columns are in this order those of the other place. The cosine of an
/// angle is a product of vectors, so three other places tell the vector of this one.
bool find_place(Formula* formula, Expr* expression, const int* order, double share, double* place) {
  constexpr double kProbes[3][2] = {{13.7, 21.3}, {101.9, -33.1}, {-57.3, 48.2}};
  double rows[3][3], cosines[3], direction[3];
  for (int i = 0; i < 3; ++i) {
    set_place(kProbes[i][0], kProbes[i][1], rows[i]);
    for (int d = 0; d < 2; ++d) formula->values[order[d]] = kProbes[i][d];
    cosines[i] = std::cos(formula->value_of(expression) / share) * kEarthRadius;
  }
  const double whole = determinant(rows[0], rows[1], rows[2]);
  for (int d = 0; d < 3; ++d) {
    double replaced[3][3];
    std::memcpy(replaced, rows, sizeof rows);
    for (int i = 0; i < 3; ++i) replaced[i][d] = cosines[i];
    direction[d] = determinant(replaced[0], replaced[1], replaced[2]) / whole;
  }
  constexpr double kDigits = 1e10;  // of degrees: the rest is of roundings
  const double level = std::hypot(direction[0], direction[1]);
  place[0] = std::round(std::atan2(direction[1], direction[0]) * (180 / M_PI) * kDigits) / kDigits;
  place[1] = std::round(std::atan2(direction[2], level) * (180 / M_PI) * kDigits) / kDigits;
  return std::isfinite(place[0]) && std::isfinite(place[1]);
}

/// Returns the relation of a column, 0 if the column is the same for all rows, or -1 if it is
/// computed from several relations.
int relation_of(Expr* column) {
  int relation = 0;
  const List* const used =
      pull_var_clause(reinterpret_cast<Node*>(column), PVC_RECURSE_PLACEHOLDERS);
  ListCell* cell;
  foreach (cell, used) {
    const int number = lfirst_node(Var, cell)->varno;
    if (relation != 0 && relation != number) return -1;
    relation = number;
  }
  return relation;
}

/// Whether each place has columns of one relation, or values that are the same for all rows. The
/// angle stays the same where the longitudes change places.
bool are_places(const List* columns, const int* order) {
  bool some = false;
  for (int i = 0; i < list_length(columns); i += 2) {
    const int relation = relation_of(static_cast<Expr*>(list_nth(columns, order[i])));
    if (relation < 0 ||
        relation != relation_of(static_cast<Expr*>(list_nth(columns, order[i + 1]))))
      return false;
    some = some || relation > 0;
  }
  return some;
}

/// The column as float8.
Expr* as_degrees(Expr* column) {
  return exprType(reinterpret_cast<Node*>(column)) == NUMERICOID ? cast_by(F_FLOAT8_NUMERIC, column)
                                                                 : as_float8(column);
}

}  // namespace

bool match_great_circle(Expr* expression, SimilarityClause* clause, double* times) {
  List* arguments;
  const Arithmetic outermost = as_arithmetic(expression, &arguments);
  if (outermost != Arithmetic::kArcSine && outermost != Arithmetic::kArcCosine &&
      outermost != Arithmetic::kArcTangent)
    return false;
  Formula formula = {NIL, false, {}};
  formula.value_of(expression);
  const int count = list_length(formula.columns);
  if (count != kColumns && count != kColumns / 2) return false;
  int order[kColumns] = {0, 1, 2, 3};
  double of_radians = 0, place[2];
  const auto is_found = [&] {
    if (!are_places(formula.columns, order)) return false;
    if (count == kColumns) return agrees(&formula, expression, order, nullptr, &of_radians);
    for (const double share : {1.0, 0.5})
      if (find_place(&formula, expression, order, share, place) &&
          agrees(&formula, expression, order, place, &of_radians))
        return true;
    return false;
  };
  while (!is_found())
    if (!std::next_permutation(order, order + count)) return false;
  *times = of_radians * M_PI;
  clause->test = great_circle_test();
  clause->test.of_null = formula.of_null;
  if (count < kColumns)
    clause->left = as_array(list_make2(float8_constant(place[0]), float8_constant(place[1])));
  for (int i = 0; i < count / 2; ++i) {
    Expr *const longitude = as_degrees(argument(formula.columns, order[2 * i])),
                *const latitude = as_degrees(argument(formula.columns, order[2 * i + 1]));
    if (longitude == nullptr || latitude == nullptr) return false;
    (i == 0 && count == kColumns ? clause->left : clause->right) =
        as_array(list_make2(longitude, latitude));
  }
  return true;
}

}  // namespace gpujoin
