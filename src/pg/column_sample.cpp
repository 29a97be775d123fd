#include "pg/column_sample.h"

#include "pg/vector_datum.h"

extern "C" {
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

template <class A, class B>
bool arrays_within(const VectorView& a, const VectorView& b, Metric metric, double threshold) {
  return raw_distance(metric, reinterpret_cast<const Unaligned<A>*>(a.data),
                      reinterpret_cast<const Unaligned<B>*>(b.data),
                      static_cast<std::uint32_t>(a.dims)) <= threshold;
}

/// Whether two sampled values are within the threshold: vectors, or numbers by their difference
/// alone.
bool within(Oid a_type, Datum a, Oid b_type, Datum b, Metric metric, const Threshold& threshold) {
  const bool a_array = a_type == FLOAT4ARRAYOID || a_type == FLOAT8ARRAYOID;
  const bool b_array = b_type == FLOAT4ARRAYOID || b_type == FLOAT8ARRAYOID;
  if (a_array != b_array) return false;
  if (!a_array) return fabs(number_of(a_type, a) - number_of(b_type, b)) <= threshold.reach;
  const VectorView left = view_vector(PG_DETOAST_DATUM_PACKED(a));
  const VectorView right = view_vector(PG_DETOAST_DATUM_PACKED(b));
  if (left.problem != VectorProblem::kNone || right.problem != VectorProblem::kNone ||
      left.dims != right.dims)
    return false;
  if (a_type == FLOAT4ARRAYOID)
    return b_type == FLOAT4ARRAYOID
               ? arrays_within<float, float>(left, right, metric, threshold.raw)
               : arrays_within<float, double>(left, right, metric, threshold.raw);
  return b_type == FLOAT4ARRAYOID
             ? arrays_within<double, float>(left, right, metric, threshold.raw)
             : arrays_within<double, double>(left, right, metric, threshold.raw);
}

}  // namespace

ColumnSample load_sample(Oid type, HeapTuple statistics) {
  AttStatsSlot common = {}, histogram = {};
  get_attstatsslot(&common, statistics, STATISTIC_KIND_MCV, InvalidOid,
                   ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS);
  get_attstatsslot(&histogram, statistics, STATISTIC_KIND_HISTOGRAM, InvalidOid,
                   ATTSTATSSLOT_VALUES);
  double rest = 1 - reinterpret_cast<Form_pg_statistic>(GETSTRUCT(statistics))->stanullfrac;
  const int most = common.nvalues + histogram.nvalues;
  ColumnSample sample = {type, most, common.nvalues,
                         static_cast<Datum*>(palloc(sizeof(Datum) * (most + 1))),
                         static_cast<double*>(palloc(sizeof(double) * (most + 1)))};
  for (int i = 0; i < common.nvalues; ++i) {
    sample.values[i] = common.values[i];
    sample.weights[i] = common.numbers[i];
    rest -= common.numbers[i];
  }
  for (int i = 0; i < histogram.nvalues; ++i) {
    sample.values[common.nvalues + i] = histogram.values[i];
    sample.weights[common.nvalues + i] = fmax(rest, 0) / histogram.nvalues;
  }
  return sample;
}

double matching_share(const ColumnSample& a, const ColumnSample& b, Metric metric,
                      const Threshold& threshold) {
  double share = 0, all = 0;
  for (int i = 0; i < a.count; ++i) {
    for (int j = 0; j < b.count; ++j) {
      if (&a == &b && i == j && i >= a.common) continue;  // the same row
      const double weight = a.weights[i] * b.weights[j];
      all += weight;
      if (within(a.type, a.values[i], b.type, b.values[j], metric, threshold)) share += weight;
    }
  }
  if (!(all > 0)) return 0;
  return fmax(share / all, 0.5 / (static_cast<double>(a.count) * b.count));
}

}  // namespace gpujoin
