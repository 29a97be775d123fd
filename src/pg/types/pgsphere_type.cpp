// The extension pgsphere (pg_sphere): points on the sky, and circles around them.
#include "pg/types/sphere.h"
#include "pg/types/sphere_tests.h"
#include "pg/types/value_types.h"

namespace gpujoin {
namespace {

/// A longitude and a latitude in radians.
ValueFinding add_point(PointBuffer* buffer, ValueShape* shape, std::int64_t id, Datum value) {
  const char* const data = DatumGetPointer(value);
  const auto x = load<double>(data), y = load<double>(data + sizeof(double));
  if (!std::isfinite(x) || !std::isfinite(y)) return finding(ValueProblem::kIncomparable, 3);
  const double place[3] = {kMeanRadius * (std::cos(y) * std::cos(x)),
                           kMeanRadius * (std::cos(y) * std::sin(x)), kMeanRadius * std::sin(y)};
  return add_doubles(buffer, shape, id, reinterpret_cast<const char*>(place), 3);
}

/// To pgsphere angles of less than 1e-9 are 0, and such that differ by less are one.
void widen_radians(double eps, std::uint32_t, EpsBand* band) {
  widen_by_radii(eps * kMeanRadius, kMeanRadius, kMeanRadius, 2e-9 * kMeanRadius, band);
}

/// A circle has at most half the sky in it; a larger radius is an error, which the condition
/// raises.
void widen_circle(double eps, std::uint32_t dims, EpsBand* band) {
  widen_radians(eps, dims, band);
  band->engine_serves = eps <= M_PI / 2;
}

constexpr TestFunction kTests[] = {
    {"pg_sphere", "dist", InvalidOid, TestForm::kDistance, ValueForm::kPlace, Metric::kL2,
     widen_radians},
    // no function's, so that no call is taken for it
    {nullptr, "", InvalidOid, TestForm::kWithin, ValueForm::kPlace, Metric::kL2, widen_circle}};
constexpr int kCircleTest = 1;

}  // namespace

const ValueType kSpointType = {.extension = "pg_sphere",
                               .name = "spoint",
                               .type = InvalidOid,
                               .scalar = ScalarType::kFloat64,
                               .add = {.place = add_point},
                               .fixed_numbers = 3,
                               .tests = kTests,
                               .test_count = lengthof(kTests),
                               .only_in_conditions = true,
                               .length = 2 * sizeof(double)};

SimilarityTest circle_test() { return {&kSpointType, &kTests[kCircleTest], false}; }

}  // namespace gpujoin
