// The extension vector (pgvector): vector and halfvec. pgvector promises the layout of its values
// to files on disk, so it does not change; it stands here in our own words.
#include "pg/types/value_reading.h"
#include "pg/types/value_types.h"

namespace gpujoin {
namespace {

struct Half {
  std::uint16_t bits;

  operator float() const {
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                            : exponent == 31
                                ? (fraction == 0 ? INFINITY : NAN)
                                : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
    return bits >> 15 ? -magnitude : magnitude;
  }
};

/// The number of dimensions and a word that is unused, in 16 bits each, then the elements.
template <class Element>
struct View {
  std::uint32_t dims;
  const char* elements;

  explicit View(const struct varlena* detoasted) {
    const char* const data = VARDATA_ANY(detoasted);
    dims = static_cast<std::uint32_t>(load<std::int16_t>(data));
    elements = data + 2 * sizeof(std::int16_t);
  }
  float operator[](std::uint32_t d) const { return load<Element>(elements + d * sizeof(Element)); }
};

template <class Element>
ValueFinding add_vector_point(PointBuffer* buffer, ValueShape* shape, std::int64_t id,
                              Datum value) {
  return with_detoasted(value, [&](const struct varlena* detoasted) {
    const View<Element> view(detoasted);
    const ValueFinding found = fit_point(buffer, shape, view.dims);
    if (found.problem != ValueProblem::kNone) return found;
    char* const target = add_point(buffer, id);
    for (std::uint32_t d = 0; d < view.dims; ++d) set_number(buffer, target, d, view[d]);
    return found;
  });
}

/// A direction that has none, the zero vector, is near nothing: NaN. pgvector sums squares in
/// single precision: what may leave its range there has no direction that is known.
template <class Element>
ValueFinding add_direction(PointBuffer* buffer, ValueShape* shape, std::int64_t id, Datum value) {
  return with_detoasted(value, [&](const struct varlena* detoasted) {
    const View<Element> view(detoasted);
    const ValueFinding found = fit_point(buffer, shape, view.dims);
    if (found.problem != ValueProblem::kNone) return found;
    double squares = 0;
    for (std::uint32_t d = 0; d < view.dims; ++d) squares += static_cast<double>(view[d]) * view[d];
    if (squares != 0 && !(squares >= 1e-30 && squares <= 1e38))
      return finding(ValueProblem::kIncomparable, view.dims);
    const double length = std::sqrt(squares);
    double* const target = reinterpret_cast<double*>(add_point(buffer, id));
    for (std::uint32_t d = 0; d < view.dims; ++d) target[d] = view[d] / length;
    return found;
  });
}

/// Differences, squares and their sum in single precision.
void widen_single(double eps, std::uint32_t dims, EpsBand* band) {
  const double relative = (dims + 8) * 1.2e-7;
  const double absolute = std::sqrt(static_cast<double>(dims)) * 1e-18;
  if (eps > 1e18) band->engine_serves = false;
  band->accept = eps * (1 - relative) - absolute;
  band->select = eps * (1 + relative) + absolute;
}

/// The distance of unit vectors follows from |a - b|^2 = 2 (1 - cos); the cosine is of sums in
/// single precision.
void widen_cosine(double eps, std::uint32_t dims, EpsBand* band) {
  const double error = (dims + 16) * 5e-7;
  band->accept = eps < error ? -1 : std::sqrt(2 * (eps - error));
  band->select = std::sqrt(2 * (eps + error));
}

constexpr TestFunction kTests[] = {{"vector", "l2_distance", InvalidOid, TestForm::kDistance,
                                    ValueForm::kPoint, Metric::kL2, widen_single},
                                   {"vector", "l1_distance", InvalidOid, TestForm::kDistance,
                                    ValueForm::kPoint, Metric::kL1, widen_single},
                                   {"vector", "cosine_distance", InvalidOid, TestForm::kDistance,
                                    ValueForm::kDirection, Metric::kL2, widen_cosine}};

}  // namespace

const ValueType kVectorType = {.extension = "vector",
                               .name = "vector",
                               .type = InvalidOid,
                               .scalar = ScalarType::kFloat32,
                               .add = {add_vector_point<float>, add_direction<float>, nullptr},
                               .rebuild = nullptr,
                               .fixed_numbers = 0,
                               .head_bytes = 2 * sizeof(std::int32_t),
                               .coordinate_bytes = sizeof(float),
                               .is_in_statistics = false,
                               .casts_to_box = false,
                               .tests = kTests,
                               .test_count = lengthof(kTests)};

const ValueType kHalfvecType = {.extension = "vector",
                                .name = "halfvec",
                                .type = InvalidOid,
                                .scalar = ScalarType::kFloat32,
                                .add = {add_vector_point<Half>, add_direction<Half>, nullptr},
                                .rebuild = nullptr,
                                .fixed_numbers = 0,
                                .head_bytes = 2 * sizeof(std::int32_t),
                                .coordinate_bytes = sizeof(Half),
                                .is_in_statistics = false,
                                .casts_to_box = false,
                                .tests = kTests,
                                .test_count = lengthof(kTests)};

}  // namespace gpujoin
