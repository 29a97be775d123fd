// Two columns of degrees, a longitude and a latitude or a right ascension and a declination: what
// functions of the extensions q3c and earthdistance compare that take numbers. A condition's
// columns become an array of both.
#include "pg/types/sphere.h"
#include "pg/types/sphere_tests.h"
#include "pg/types/value_types.h"
#include "pg/types/vector_datum.h"

namespace gpujoin {
namespace {

/// A place; what is none, or not finite, is for the functions themselves.
ValueFinding add_columns(PointBuffer* buffer, ValueShape* shape, std::int64_t id, Datum value) {
  return with_detoasted(value, [&](const struct varlena* array) {
    const VectorView view = view_vector(array);
    const auto dims = static_cast<std::uint32_t>(view.dims);
    if (view.problem != ValueProblem::kNone) return finding(view.problem, dims);
    const auto* const degrees = reinterpret_cast<const Unaligned<double>*>(view.data);
    return add_degrees(buffer, shape, id, degrees[0], degrees[1], false);
  });
}

void widen_degrees(double eps, std::uint32_t, EpsBand* band) {
  widen_by_angle(eps * (M_PI / 180) * kMeanRadius, band);
}

/// A share of half the circle.
void widen_half_turns(double eps, std::uint32_t, EpsBand* band) {
  widen_by_angle(eps * M_PI * kMeanRadius, band);
}

/// The same by a formula that a query computes by hand. Such formulas lose half of their digits
/// where places are near, or antipodes.
void widen_formula(double eps, std::uint32_t, EpsBand* band) {
  constexpr double kError = 1e-7;
  EpsBand inner = *band;
  widen_by_angle((eps + kError) * M_PI * kMeanRadius, band);
  widen_by_angle(std::fmax(0, eps - kError) * M_PI * kMeanRadius, &inner);
  band->accept = eps > kError ? inner.accept : -1;
}

/// The square of the sine of half the angle.
void widen_haversines(double eps, std::uint32_t, EpsBand* band) {
  widen_by_angle(2 * std::asin(std::sqrt(std::fmin(eps, 1))) * kMeanRadius, band);
}

/// q3c_join() takes the sine of its radius, which falls beyond a right angle. A negative radius is
/// for q3c itself.
void widen_radius(double eps, std::uint32_t dims, EpsBand* band) {
  if (eps > 90)
    *band = {true, false, false, -1, kAnyChord};
  else
    widen_degrees(eps, dims, band);
}

/// A share of the diameter, by which a box around a place is larger than it on each side. No line
/// from the place to one in the box is longer than half the box's diagonal; one that is no longer
/// than half its side stays inside.
void widen_earth_box(double eps, std::uint32_t, EpsBand* band) {
  constexpr double kRelative = 1e-9, kSlack = 2e-6;  // metres, as widen_by_angle() has them
  const double line = 2 * kMeanRadius * std::fmin(eps, 1);
  const double inner = line * (1 - kRelative) - kSlack;
  band->accept = inner > 0 ? inner : -1;
  band->select = std::fmin(kAnyChord, std::sqrt(3) * (line * (1 + kRelative) + kSlack));
}

/// A function of q3c.
constexpr TestFunction of_q3c(const char* name, WidenBand widen) {
  return {"q3c", name, InvalidOid, TestForm::kDistance, ValueForm::kPlace, Metric::kL2, widen};
}

/// No function's, so that no call is taken for one of them.
constexpr TestFunction of_no_function(TestForm form, WidenBand widen) {
  return {nullptr, "", InvalidOid, form, ValueForm::kPlace, Metric::kL2, widen};
}

constexpr TestFunction kTests[] = {of_q3c("q3c_dist", widen_degrees),
                                   of_q3c("q3c_sindist", widen_haversines),
                                   of_no_function(TestForm::kWithin, widen_radius),
                                   of_no_function(TestForm::kDistance, widen_half_turns),
                                   of_no_function(TestForm::kDistance, widen_formula),
                                   of_no_function(TestForm::kDistance, widen_earth_box)};
constexpr int kRadiusTest = 2, kHalfTurnsTest = 3, kFormulaTest = 4, kEarthBoxTest = 5;

}  // namespace

const ValueType kDegreesType = {.extension = nullptr,
                                .name = "degrees",
                                .type = InvalidOid,
                                .scalar = ScalarType::kFloat64,
                                .add = {.place = add_columns},
                                .fixed_numbers = 3,
                                .tests = kTests,
                                .test_count = lengthof(kTests),
                                .only_in_conditions = true};

bool tests_haversines(const SimilarityTest& test) {
  return test.by->widen == widen_haversines || test.by->widen == widen_radius;
}

SimilarityTest radius_test() { return {&kDegreesType, &kTests[kRadiusTest], false}; }

SimilarityTest earth_box_test() { return {&kDegreesType, &kTests[kEarthBoxTest], false}; }

SimilarityTest great_circle_test() { return {&kDegreesType, &kTests[kFormulaTest], false}; }

SimilarityTest half_turns_test() { return {&kDegreesType, &kTests[kHalfTurnsTest], false}; }

}  // namespace gpujoin
