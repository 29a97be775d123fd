// The extension vector (pgvector): vector, halfvec and sparsevec. pgvector promises the layout of
// its values to files on disk, so it does not change; it stands here in our own words.
#include "pg/geometry/inner_product.h"
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
struct DenseView {
  std::uint32_t dims;
  const char* elements;

  explicit DenseView(const struct varlena* detoasted) {
    const char* const data = VARDATA_ANY(detoasted);
    dims = static_cast<std::uint32_t>(load<std::int16_t>(data));
    elements = data + 2 * sizeof(std::int16_t);
  }
  /// Calls visit(dimension, element) for each element that may not be 0.
  template <class Visit>
  void visit(const Visit& visit) const {
    for (std::uint32_t d = 0; d < dims; ++d)
      visit(d, static_cast<float>(load<Element>(elements + d * sizeof(Element))));
  }
};

/// The numbers of dimensions and of elements that are not 0, and a word that is unused, in 32 bits
/// each; the dimensions of these elements, ascending from 0, and then the elements.
struct SparseView {
  std::uint32_t dims, count;
  const char *indices, *elements;

  explicit SparseView(const struct varlena* detoasted) {
    const char* const data = VARDATA_ANY(detoasted);
    dims = load<std::uint32_t>(data);
    count = load<std::uint32_t>(data + sizeof dims);
    indices = data + 3 * sizeof(std::int32_t);
    elements = indices + count * sizeof(std::int32_t);
  }
  template <class Visit>
  void visit(const Visit& visit) const {
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto dimension = load<std::uint32_t>(indices + i * sizeof(std::int32_t));
      if (dimension < dims) visit(dimension, load<float>(elements + i * sizeof(float)));
    }
  }
};

template <class View>
double squares_of(const View& view) {
  double squares = 0;
  view.visit([&](std::uint32_t, float x) { squares += static_cast<double>(x) * x; });
  return squares;
}

/// Adds a point of what the value's elements become; the numbers after them are 0.
template <class View, class Change>
void add_elements(PointBuffer* buffer, std::int64_t id, const View& view, const Change& change) {
  char* const target = add_point(buffer, id);
  std::memset(target, 0, buffer->dims * scalar_bytes(buffer->scalar));
  view.visit([&](std::uint32_t d, float x) { set_number(buffer, target, d, change(x)); });
}

float unchanged(float x) { return x; }

template <class View>
ValueFinding add_vector_point(PointBuffer* buffer, ValueShape* shape, std::int64_t id,
                              Datum value) {
  return with_detoasted(value, [&](const struct varlena* detoasted) {
    const View view(detoasted);
    const ValueFinding found = fit_point(buffer, shape, view.dims);
    if (found.problem == ValueProblem::kNone) add_elements(buffer, id, view, unchanged);
    return found;
  });
}

/// A direction that has none, the zero vector, is near nothing: NaN. pgvector sums squares in
/// single precision: what may leave its range there has no direction that is known.
template <class View>
ValueFinding add_direction(PointBuffer* buffer, ValueShape* shape, std::int64_t id, Datum value) {
  return with_detoasted(value, [&](const struct varlena* detoasted) {
    const View view(detoasted);
    const ValueFinding found = fit_point(buffer, shape, view.dims);
    if (found.problem != ValueProblem::kNone) return found;
    const double squares = squares_of(view);
    if (squares != 0 && !(squares >= 1e-30 && squares <= 1e38))
      return finding(ValueProblem::kIncomparable, view.dims);
    if (squares == 0) {
      double* const target = reinterpret_cast<double*>(add_point(buffer, id));
      std::fill_n(target, view.dims, NAN);
    } else {
      const double length = std::sqrt(squares);
      add_elements(buffer, id, view, [&](float x) { return x / length; });
    }
    return found;
  });
}

/// The dimensions that lifting adds are 0.
template <class View>
ValueFinding add_product(PointBuffer* buffer, ValueShape* shape, std::int64_t id, Datum value) {
  return with_detoasted(value, [&](const struct varlena* detoasted) {
    const View view(detoasted);
    const ValueFinding found = fit(buffer, shape, view.dims, kMaxDimensions - kLiftedDims, 1);
    if (found.problem != ValueProblem::kNone) return found;
    buffer->dims = view.dims + kLiftedDims;
    if (!can_lift(squares_of(view))) return finding(ValueProblem::kIncomparable, view.dims);
    add_elements(buffer, id, view, unchanged);
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

/// What distances stand for inner products depends on the points of both sides
/// (pg/types/product_test.h).
void widen_product(double, std::uint32_t, EpsBand* band) { band->engine_serves = false; }

constexpr TestFunction of_pgvector(const char* name, TestForm form, ValueForm compared,
                                   Metric metric, WidenBand widen) {
  return {"vector", name, InvalidOid, form, compared, metric, widen};
}

constexpr TestFunction of_product(const char* name, TestForm form) {
  return of_pgvector(name, form, ValueForm::kProduct, Metric::kL2, widen_product);
}

constexpr TestFunction kTests[] = {
    of_pgvector("l2_distance", TestForm::kDistance, ValueForm::kPoint, Metric::kL2, widen_single),
    of_pgvector("l1_distance", TestForm::kDistance, ValueForm::kPoint, Metric::kL1, widen_single),
    of_pgvector("cosine_distance", TestForm::kDistance, ValueForm::kDirection, Metric::kL2,
                widen_cosine),
    of_product("vector_negative_inner_product", TestForm::kDistance),
    of_product("halfvec_negative_inner_product", TestForm::kDistance),
    of_product("sparsevec_negative_inner_product", TestForm::kDistance),
    of_product("inner_product", TestForm::kNegative)};

/// Sparse vectors become points with all their zeros. Measured: in so few dimensions comparing
/// these takes no longer than pgvector's walk over what is not 0, however little that is.
constexpr std::int32_t kMostSparse = 1000;

template <class View>
constexpr ValueType of_pgvector(const char* name, std::uint32_t head_bytes,
                                std::uint32_t coordinate_bytes, std::int32_t most_declared = 0) {
  return {.extension = "vector",
          .name = name,
          .type = InvalidOid,
          .scalar = ScalarType::kFloat32,
          .add = {.point = add_vector_point<View>,
                  .direction = add_direction<View>,
                  .product = add_product<View>},
          .fixed_numbers = 0,
          .head_bytes = head_bytes,
          .coordinate_bytes = coordinate_bytes,
          .tests = kTests,
          .test_count = lengthof(kTests),
          .most_declared = most_declared};
}

}  // namespace

const ValueType kVectorType =
    of_pgvector<DenseView<float>>("vector", 2 * sizeof(std::int32_t), sizeof(float));
const ValueType kHalfvecType =
    of_pgvector<DenseView<Half>>("halfvec", 2 * sizeof(std::int32_t), sizeof(Half));
const ValueType kSparsevecType = of_pgvector<SparseView>(
    "sparsevec", 4 * sizeof(std::int32_t), sizeof(std::int32_t) + sizeof(float), kMostSparse);

}  // namespace gpujoin
