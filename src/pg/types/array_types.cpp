// real[] and double precision[], whose distances are gpujoin's own, and columns that a query
// subtracts itself.
#include <cmath>

#include "pg/types/column_tests.h"
#include "pg/types/own_tests.h"
#include "pg/types/value_reading.h"
#include "pg/types/value_types.h"
#include "pg/types/vector_datum.h"

extern "C" {
#include "catalog/pg_type.h"
}

namespace gpujoin {
namespace {

bool has_nan(const VectorView& view) {
  const auto* const numbers = reinterpret_cast<const Unaligned<double>*>(view.data);
  for (int i = 0; i < view.dims; ++i)
    if (std::isnan(static_cast<double>(numbers[i]))) return true;
  return false;
}

/// `held`: NaN is a number that float8 does not hold, whose pairs are for the condition.
template <bool float4, bool held = false>
ValueFinding add_array(PointBuffer* buffer, ValueShape* shape, std::int64_t id, Datum value) {
  return with_detoasted(value, [&](const struct varlena* array) {
    const VectorView view = view_vector(array);
    const auto dims = static_cast<std::uint32_t>(view.dims);
    if (view.problem != ValueProblem::kNone) return finding(view.problem, dims);
    if (held && has_nan(view)) return finding(ValueProblem::kIncomparable, dims);
    const ValueFinding found = fit_point(buffer, shape, dims);
    if (found.problem == ValueProblem::kNone) add_vector(buffer, id, view, float4);
    return found;
  });
}

/// A longitude and a latitude.
template <class T>
ValueFinding add_place(PointBuffer* buffer, ValueShape* shape, std::int64_t id, Datum value) {
  return with_detoasted(value, [&](const struct varlena* array) {
    const VectorView view = view_vector(array);
    const auto dims = static_cast<std::uint32_t>(view.dims);
    if (view.problem != ValueProblem::kNone) return finding(view.problem, dims);
    if (dims != 2) return finding(ValueProblem::kIncomparable, dims);
    const auto* const degrees = reinterpret_cast<const Unaligned<T>*>(view.data);
    return add_degrees(buffer, shape, id, degrees[0], degrees[1], true);
  });
}

template <Oid element>
Datum rebuild_array(const Dataset& points, std::uint64_t position) {
  const Size bytes = points.dims * scalar_bytes(points.scalar);
  const Size size = ARR_OVERHEAD_NONULLS(1) + bytes;
  ArrayType* const array = static_cast<ArrayType*>(palloc0(size));
  SET_VARSIZE(array, size);
  array->ndim = 1;
  array->elemtype = element;
  ARR_DIMS(array)[0] = static_cast<int>(points.dims);
  ARR_LBOUND(array)[0] = 1;
  std::memcpy(ARR_DATA_PTR(array), point(points, position), bytes);
  return PointerGetDatum(array);
}

constexpr TestFunction kTests[] = {
    own_test("gpu_distance", TestForm::kDistance, Metric::kL2),
    own_test("gpu_l1_distance", TestForm::kDistance, Metric::kL1),
    own_test("gpu_cosine_distance", TestForm::kDistance, Metric::kCosine),
    own_test("gpu_distance", TestForm::kDistance, Metric::kL2, "l2"),
    own_test("gpu_distance", TestForm::kDistance, Metric::kL1, "l1"),
    own_test("gpu_distance", TestForm::kDistance, Metric::kLInf, "linf"),
    own_test("gpu_distance", TestForm::kDistance, Metric::kCosine, "cosine"),
    own_test("gpu_within", TestForm::kWithin, Metric::kL2),
    own_test("gpu_within", TestForm::kWithin, Metric::kL2, "l2"),
    own_test("gpu_within", TestForm::kWithin, Metric::kL1, "l1"),
    own_test("gpu_within", TestForm::kWithin, Metric::kLInf, "linf"),
    own_test("gpu_within", TestForm::kWithin, Metric::kCosine, "cosine"),
    haversine_test("gpu_distance", TestForm::kDistance),
    haversine_test("gpu_within", TestForm::kWithin)};

/// Roundings in single precision: of differences, squares and sums.
void widen_single(double eps, std::uint32_t dims, EpsBand* band) {
  const double relative = 4 * (dims + 4) * 0x1p-24;
  const double absolute = std::sqrt(static_cast<double>(dims)) * 1e-22;  // of denormal squares
  band->accept = eps * (1 - relative) - absolute;
  band->select = eps * (1 + relative) + absolute;
}

template <WidenBand widen>
void widen_root(double square, std::uint32_t dims, EpsBand* band) {
  widen(std::sqrt(square), dims, band);
}

/// No function's, so that no call is taken for one of them.
void widen_numeric(double eps, std::uint32_t, EpsBand* band) {
  band->accept = eps * (1 - kNumericError);
  band->select = eps * (1 + kNumericError);
}

constexpr TestFunction of_columns(Metric metric, WidenBand widen) {
  return {nullptr, "", InvalidOid, TestForm::kDistance, ValueForm::kPoint, metric, widen};
}

// In the order in which column_test() finds them.
constexpr TestFunction kColumnTests[] = {
    of_columns(Metric::kL2, nullptr),
    of_columns(Metric::kL2, widen_double),
    of_columns(Metric::kL2, widen_single),
    of_columns(Metric::kL2, widen_numeric),
    of_columns(Metric::kL2, widen_root<widen_double>),  // in the engine's arithmetic, too
    of_columns(Metric::kL2, widen_root<widen_double>),
    of_columns(Metric::kL2, widen_root<widen_single>),
    of_columns(Metric::kL2, widen_root<widen_numeric>),
    of_columns(Metric::kLInf, nullptr),
    of_columns(Metric::kLInf, widen_double),
    of_columns(Metric::kLInf, widen_single),
    of_columns(Metric::kLInf, widen_numeric),
    of_columns(Metric::kL1, nullptr),
    of_columns(Metric::kL1, widen_double),
    of_columns(Metric::kL1, widen_single),
    of_columns(Metric::kL1, widen_numeric)};

constexpr ValueType columns_of(const char* name, AddValue add) {
  return {.extension = nullptr,
          .name = name,
          .type = InvalidOid,
          .scalar = ScalarType::kFloat64,
          .add = {.point = add},
          .fixed_numbers = 0,
          .head_bytes = ARR_OVERHEAD_NONULLS(1),
          .coordinate_bytes = sizeof(double),
          .tests = kColumnTests,
          .test_count = lengthof(kColumnTests),
          .only_in_conditions = true};
}

}  // namespace

const ValueType kFloat4ArrayType = {.extension = nullptr,
                                    .name = "real[]",
                                    .type = FLOAT4ARRAYOID,
                                    .scalar = ScalarType::kFloat32,
                                    .add = {.point = add_array<true>, .place = add_place<float>},
                                    .rebuild = rebuild_array<FLOAT4OID>,
                                    .fixed_numbers = 0,
                                    .head_bytes = ARR_OVERHEAD_NONULLS(1),
                                    .coordinate_bytes = sizeof(float),
                                    .is_in_statistics = true,
                                    .tests = kTests,
                                    .test_count = lengthof(kTests)};

const ValueType kFloat8ArrayType = {.extension = nullptr,
                                    .name = "double precision[]",
                                    .type = FLOAT8ARRAYOID,
                                    .scalar = ScalarType::kFloat64,
                                    .add = {.point = add_array<false>, .place = add_place<double>},
                                    .rebuild = rebuild_array<FLOAT8OID>,
                                    .fixed_numbers = 0,
                                    .head_bytes = ARR_OVERHEAD_NONULLS(1),
                                    .coordinate_bytes = sizeof(double),
                                    .is_in_statistics = true,
                                    .tests = kTests,
                                    .test_count = lengthof(kTests)};

const ValueType kColumnsType = columns_of("columns", add_array<false>);
const ValueType kHeldColumnsType =
    columns_of("columns that float8 may not hold", add_array<false, true>);

SimilarityTest column_test(ColumnArithmetic arithmetic, ColumnForm form, bool held) {
  constexpr int kArithmetics = 4;
  const int number = kArithmetics * static_cast<int>(form) + static_cast<int>(arithmetic);
  return {held ? &kHeldColumnsType : &kColumnsType, &kColumnTests[number], false};
}

bool is_of_columns(const SimilarityTest& test) {
  return test.type == &kColumnsType || test.type == &kHeldColumnsType;
}

bool is_of_one_column(const SimilarityTest& test) {
  return is_of_columns(test) && test.by->metric == Metric::kLInf;
}

}  // namespace gpujoin
