// The extension cube: points and boxes of up to a hundred dimensions. Cube promises the layout of
// its values to files on disk, so it does not change; it stands here in our own words.
#include "pg/types/sphere_tests.h"
#include "pg/types/value_reading.h"
#include "pg/types/value_types.h"

namespace gpujoin {
namespace {

/// A word of flags, whose highest bit marks a point and whose others count the dimensions; then the
/// coordinates of a point, or of two opposite corners of a box, in any order. To
/// cube a NaN lies within any interval, and its Chebyshev distance passes over a difference of
/// infinities.
struct CubeView {
  std::uint32_t dims;
  const char* corner;
  const char* opposite;  ///< the same for a point
  bool has_nan, is_finite;

  double at(const char* from, std::uint32_t d) const {
    return load<double>(from + d * sizeof(double));
  }
};

CubeView view_cube(const struct varlena* detoasted) {
  constexpr std::uint32_t kIsPoint = std::uint32_t{1} << 31;
  const char* const data = VARDATA_ANY(detoasted);
  const auto header = load<std::uint32_t>(data);
  CubeView cube = {header & ~kIsPoint, data + sizeof header, data + sizeof header, false, true};
  if ((header & kIsPoint) == 0) cube.opposite += cube.dims * sizeof(double);
  for (std::uint32_t d = 0; d < cube.dims; ++d) {
    const double one = cube.at(cube.corner, d), other = cube.at(cube.opposite, d);
    cube.has_nan = cube.has_nan || std::isnan(one) || std::isnan(other);
    cube.is_finite = cube.is_finite && std::isfinite(one) && std::isfinite(other);
  }
  return cube;
}

ValueFinding add_cube_point(PointBuffer* buffer, ValueShape* shape, std::int64_t id, Datum value) {
  return with_detoasted(value, [&](const struct varlena* detoasted) {
    const CubeView cube = view_cube(detoasted);
    if (!shape->as_stored && !cube.is_finite)
      return finding(ValueProblem::kIncomparable, cube.dims);
    if (std::memcmp(cube.corner, cube.opposite, cube.dims * sizeof(double)) != 0)
      return finding(ValueProblem::kNotAPoint, cube.dims);
    return add_doubles(buffer, shape, id, cube.corner, cube.dims);
  });
}

/// To operators a cube of no dimensions is one of 0 in any, and of more dimensions than a box can
/// have the first ones are left.
ValueFinding add_cube_box(PointBuffer* buffer, ValueShape* shape, std::int64_t id, Datum value) {
  return with_detoasted(value, [&](const struct varlena* detoasted) {
    const CubeView cube = view_cube(detoasted);
    const std::uint32_t dims = std::min(cube.dims, kMaxBoxDimensions);
    if (shape->as_stored && dims < cube.dims)
      return finding(ValueProblem::kTooManyDimensions, cube.dims);
    if (!shape->as_stored && (cube.has_nan || (shape->demands.only_exact && dims < cube.dims)))
      return finding(ValueProblem::kIncomparable, cube.dims);
    double low[kMaxBoxDimensions] = {}, high[kMaxBoxDimensions] = {};
    for (std::uint32_t d = 0; d < dims; ++d) {
      const double one = cube.at(cube.corner, d), other = cube.at(cube.opposite, d);
      low[d] = cube.has_nan ? NAN : std::fmin(one, other);
      high[d] = cube.has_nan ? NAN : std::fmax(one, other);
    }
    shape->has_approximate = shape->has_approximate || dims < cube.dims;
    return add_corners(buffer, shape, id, low, high, shape->as_stored ? dims : std::max(dims, 1U));
  });
}

/// A chord that was computed from an arc, by some ten roundings: less than 2^-48 of it, also where
/// the arc is half the circle, for there the sine changes little. Arcs that underflow on the way
/// are shorter than 1e-99.
void widen_chord(double eps, std::uint32_t, EpsBand* band) {
  constexpr double kRelative = 1e-12, kAbsolute = 1e-99;
  band->accept = eps * (1 - kRelative) - kAbsolute;
  band->select = eps * (1 + kRelative) + kAbsolute;
}

constexpr TestFunction kTests[] = {
    {"cube", "cube_distance", InvalidOid, TestForm::kDistance, ValueForm::kPoint, Metric::kL2,
     widen_double},
    {"cube", "distance_taxicab", InvalidOid, TestForm::kDistance, ValueForm::kPoint, Metric::kL1,
     widen_double},
    {"cube", "distance_chebyshev", InvalidOid, TestForm::kDistance, ValueForm::kPoint,
     Metric::kLInf, widen_double},
    {"cube", "cube_overlap", InvalidOid, TestForm::kOverlap, ValueForm::kBox, Metric::kLInf,
     nullptr},
    // no function's, so that no call is taken for it
    {nullptr, "", InvalidOid, TestForm::kDistance, ValueForm::kPoint, Metric::kL2, widen_chord}};
constexpr int kChordTest = 4;

}  // namespace

const ValueType kCubeType = {.extension = "cube",
                             .name = "cube",
                             .type = InvalidOid,
                             .scalar = ScalarType::kFloat64,
                             .add = {.point = add_cube_point, .box = add_cube_box},
                             .fixed_numbers = 0,
                             .head_bytes = 2 * sizeof(std::int32_t),
                             .coordinate_bytes = sizeof(double),
                             .tests = kTests,
                             .test_count = lengthof(kTests)};

SimilarityTest earth_chord_test() { return {&kCubeType, &kTests[kChordTest], false}; }

}  // namespace gpujoin
