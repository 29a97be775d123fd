#include "pg/reading/column_sample.h"

#include <numeric>

#include "pg/types/vector_datum.h"

extern "C" {
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

/// Numbers that an estimate compares, some tenths of a millisecond's worth.
constexpr std::uint64_t kMostWork = 1 << 17;
/// What a pair costs beside them, in numbers.
constexpr std::uint64_t kPairWork = 4;

ColumnSample new_sample(int count, std::uint32_t dims) {
  return {count, dims, static_cast<double*>(palloc(sizeof(double) * (count * dims + 1))),
          static_cast<double*>(palloc(sizeof(double) * (count + 1))),
          static_cast<int*>(palloc(sizeof(int) * (count + 1)))};
}

bool is_array(Oid type) { return type == FLOAT4ARRAYOID || type == FLOAT8ARRAYOID; }

/// The array's number of dimensions, or 0 if it is no vector.
std::uint32_t dims_of(Datum array) {
  const VectorView view = view_vector(PG_DETOAST_DATUM_PACKED(array));
  return view.problem == VectorProblem::kNone ? static_cast<std::uint32_t>(view.dims) : 0;
}

void set_value(ColumnSample* sample, int i, Oid type, Datum value) {
  double* const target = sample->values + std::size_t{sample->dims} * i;
  if (!is_array(type)) {
    *target = number_of(type, value);
    return;
  }
  std::fill_n(target, sample->dims, NAN);
  if (dims_of(value) != sample->dims) return;
  const char* const data = view_vector(PG_DETOAST_DATUM_PACKED(value)).data;
  if (type == FLOAT4ARRAYOID)
    std::copy_n(reinterpret_cast<const Unaligned<float>*>(data), sample->dims, target);
  else
    std::copy_n(reinterpret_cast<const Unaligned<double>*>(data), sample->dims, target);
}

/// Whether two values are near. A raw distance only grows with every coordinate, so that of most
/// pairs few are looked at.
bool are_near(const NearTest& near, const double* a, const double* b, std::uint32_t dims,
              std::uint64_t* work) {
  const BoxTest& test = near.test;
  *work += kPairWork;
  if (near.boxes || test.metric == Metric::kCosine) {
    *work += dims;
    if (!near.boxes) return raw_distance(test.metric, a, b, dims) <= test.threshold;
    return is_box(a, dims / 2) && is_box(b, dims / 2) && passes(test, a, b, dims / 2);
  }
  constexpr std::uint32_t kStep = 16;
  double raw = 0;
  for (std::uint32_t d = 0; d < dims; d += kStep) {
    const std::uint32_t step = std::min(kStep, dims - d);
    *work += step;
    const double part = raw_distance(test.metric, a + d, b + d, step);
    raw = test.metric == Metric::kLInf ? part : raw + part;
    if (!(raw <= test.threshold)) return false;
  }
  return true;
}

/// A step that visits all of 0 .. count - 1, neighbours late after one another.
int stride_of(int count) {
  int stride = static_cast<int>(0.618 * count);
  while (stride > 1 && std::gcd(stride, count) != 1) --stride;
  return std::max(stride, 1);
}

}  // namespace

ColumnSample load_sample(Oid type, HeapTuple statistics) {
  constexpr int kMost = 128;  // of either kind
  AttStatsSlot common = {}, histogram = {};
  get_attstatsslot(&common, statistics, STATISTIC_KIND_MCV, InvalidOid,
                   ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS);
  get_attstatsslot(&histogram, statistics, STATISTIC_KIND_HISTOGRAM, InvalidOid,
                   ATTSTATSSLOT_VALUES);
  const int commons = std::min(common.nvalues, kMost), bounds = std::min(histogram.nvalues, kMost);
  const auto bound = [&](int i) {
    return histogram.values[static_cast<std::int64_t>(i) * histogram.nvalues / bounds];
  };
  std::uint32_t dims = is_array(type) ? 0 : 1;
  for (int i = 0; dims == 0 && i < commons; ++i) dims = dims_of(common.values[i]);
  for (int i = 0; dims == 0 && i < bounds; ++i) dims = dims_of(bound(i));
  ColumnSample sample = new_sample(dims == 0 ? 0 : commons + bounds, dims);
  double rest = 1 - reinterpret_cast<Form_pg_statistic>(GETSTRUCT(statistics))->stanullfrac;
  for (int i = 0; i < common.nvalues; ++i) rest -= common.numbers[i];
  for (int i = 0; i < sample.count; ++i) {
    const bool is_common = i < commons;
    set_value(&sample, i, type, is_common ? common.values[i] : bound(i - commons));
    sample.weights[i] = is_common ? common.numbers[i] : fmax(rest, 0) / bounds;
    sample.places[i] = is_common ? -1 : i;  // two rows of the same common value are a pair as well
  }
  free_attstatsslot(&common);
  free_attstatsslot(&histogram);
  return sample;
}

ColumnSample make_sample(const PointBuffer& points) {
  ColumnSample sample = new_sample(static_cast<int>(points.rows), points.dims);
  const std::size_t numbers = points.rows * points.dims;
  if (points.scalar == ScalarType::kFloat32)
    std::copy_n(reinterpret_cast<const float*>(points.coordinates), numbers, sample.values);
  else
    std::copy_n(reinterpret_cast<const double*>(points.coordinates), numbers, sample.values);
  std::fill_n(sample.weights, sample.count, 1.0);
  std::copy_n(points.ids, sample.count, sample.places);
  return sample;
}

double matching_share(const ColumnSample& a, const ColumnSample& b, const NearTest& test,
                      bool same_rows, double unseen) {
  const int stride = stride_of(b.count);
  std::uint64_t work = 0, pairs = 0;
  double near = 0, all = 0;
  // Diagonals far apart, so that whenever the work is up each value has been compared with many.
  for (int k = 1; k <= b.count && work < kMostWork; ++k) {
    CHECK_FOR_INTERRUPTS();
    const int shift = static_cast<int>(std::int64_t{k} * stride % b.count);
    for (int i = 0; i < a.count; ++i) {
      const int j = (i + shift) % b.count;
      if (same_rows && a.places[i] >= 0 && a.places[i] == b.places[j]) continue;
      const double weight = a.weights[i] * b.weights[j];
      all += weight;
      ++pairs;
      if (a.dims == b.dims && are_near(test, a.values + std::size_t{a.dims} * i,
                                       b.values + std::size_t{b.dims} * j, a.dims, &work))
        near += weight;
    }
  }
  if (!(all > 0)) return unseen;
  return near > 0 ? near / all : fmin(0.5 / static_cast<double>(pairs), unseen);
}

}  // namespace gpujoin
