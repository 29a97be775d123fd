// PostgreSQL's own point and box. To earthdistance a point is a longitude and a latitude.
#include "pg/types/own_tests.h"
#include "pg/types/value_reading.h"
#include "pg/types/value_types.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/fmgroids.h"
#include "utils/geo_decls.h"
}

namespace gpujoin {
namespace {

/// PostgreSQL's own distance raises an error where the difference of two coordinates overflows.
bool may_overflow(double coordinate) {
  constexpr double kMost = 1e150;
  return std::isfinite(coordinate) && std::fabs(coordinate) > kMost;
}

ValueFinding add_geometric_point(PointBuffer* buffer, ValueShape* shape, std::int64_t id,
                                 Datum value) {
  const Point* const point = DatumGetPointP(value);
  if (!shape->as_stored && (may_overflow(point->x) || may_overflow(point->y)))
    return finding(ValueProblem::kIncomparable, 2);
  const double coordinates[2] = {point->x, point->y};
  return add_doubles(buffer, shape, id, reinterpret_cast<const char*>(coordinates), 2);
}

ValueFinding add_place(PointBuffer* buffer, ValueShape* shape, std::int64_t id, Datum value) {
  const Point* const degrees = DatumGetPointP(value);
  return add_degrees(buffer, shape, id, degrees->x, degrees->y, shape->as_stored);
}

/// Statute miles on a sphere of 3958.747716 of them.
void widen_miles(double eps, std::uint32_t, EpsBand* band) {
  widen_by_radii(eps * (kMeanRadius / 3958.747716), kMeanRadius, kMeanRadius, kUsualSlack, band);
}

Datum rebuild_point(const Dataset& points, std::uint64_t position) {
  Point* const value = static_cast<Point*>(palloc(sizeof(Point)));
  std::memcpy(value, point(points, position), sizeof(Point));
  return PointPGetDatum(value);
}

/// Boxes overlap to PostgreSQL if a low bound is at most the other's high one plus EPSILON,
/// rounded. A box with a NaN has corners in any order.
ValueFinding add_geometric_box(PointBuffer* buffer, ValueShape* shape, std::int64_t id,
                               Datum value) {
  const BOX* const box = DatumGetBoxP(value);
  const double low[] = {box->low.x, box->low.y};
  double high[] = {box->high.x, box->high.y};
  for (double& bound : high)
    if (!shape->as_stored) bound += EPSILON;
  return add_corners(buffer, shape, id, low, high, 2);
}

constexpr TestFunction kPointTests[] = {
    {nullptr, "point_distance", F_POINT_DISTANCE, TestForm::kDistance, ValueForm::kPoint,
     Metric::kL2, widen_double},
    own_test("gpu_within", TestForm::kWithin, Metric::kL2),
    own_test("gpu_distance", TestForm::kDistance, Metric::kL2, "l2"),
    own_test("gpu_distance", TestForm::kDistance, Metric::kL1, "l1"),
    own_test("gpu_distance", TestForm::kDistance, Metric::kLInf, "linf"),
    own_test("gpu_distance", TestForm::kDistance, Metric::kCosine, "cosine"),
    own_test("gpu_within", TestForm::kWithin, Metric::kL2, "l2"),
    own_test("gpu_within", TestForm::kWithin, Metric::kL1, "l1"),
    own_test("gpu_within", TestForm::kWithin, Metric::kLInf, "linf"),
    own_test("gpu_within", TestForm::kWithin, Metric::kCosine, "cosine"),
    haversine_test("gpu_distance", TestForm::kDistance),
    haversine_test("gpu_within", TestForm::kWithin),
    {"earthdistance", "geo_distance", InvalidOid, TestForm::kDistance, ValueForm::kPlace,
     Metric::kL2, widen_miles}};

constexpr TestFunction kBoxTests[] = {{nullptr, "box_overlap", F_BOX_OVERLAP, TestForm::kOverlap,
                                       ValueForm::kBox, Metric::kLInf, nullptr}};

}  // namespace

const ValueType kPointType = {.extension = nullptr,
                              .name = "point",
                              .type = POINTOID,
                              .scalar = ScalarType::kFloat64,
                              .add = {.point = add_geometric_point, .place = add_place},
                              .rebuild = rebuild_point,
                              .fixed_numbers = 2,
                              .tests = kPointTests,
                              .test_count = lengthof(kPointTests)};

const ValueType kBoxType = {.extension = nullptr,
                            .name = "box",
                            .type = BOXOID,
                            .scalar = ScalarType::kFloat64,
                            .add = {.box = add_geometric_box},
                            .fixed_numbers = 4,
                            .tests = kBoxTests,
                            .test_count = lengthof(kBoxTests)};

}  // namespace gpujoin
