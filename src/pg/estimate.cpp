// The share of pairs within eps is counted among the values that ANALYZE keeps in pg_statistic: the
// bounds of a histogram are a sample of about a hundred vectors, most common values weigh what they
// are worth.
#include "pg/estimate.h"

#include "core/threshold.h"
#include "pg/relation.h"
#include "pg/vector_datum.h"

extern "C" {
#include "access/relation.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/syscache.h"
}

namespace gpujoin {
namespace {

constexpr double kDefaultRows = 1000;     // of a relation that nothing is known about
constexpr double kDefaultNeighbors = 10;  // of a row, when there are no statistics
constexpr double kStartCost = 100;        // threads, index: what even an empty join costs

/// Values of a column that statistics tell, each with the share of rows it stands for.
struct ColumnSample {
  Oid type;
  int count;
  int common;  ///< the first ones are common values: two rows of the same one are a pair as well
  Datum* values;
  double* weights;
};

struct SideEstimate {
  double rows;
  double pages;
  SideColumns columns;
  ColumnSample* samples;  ///< [columns.count]; null: no statistics that this user may see
};

bool load_sample(const SideColumns& columns, int column, bool inherited, ColumnSample* sample) {
  const HeapTuple statistics =
      SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(columns.relation),
                      Int16GetDatum(columns.attributes[column]), BoolGetDatum(inherited));
  if (!HeapTupleIsValid(statistics)) return false;
  AttStatsSlot common = {}, histogram = {};
  get_attstatsslot(&common, statistics, STATISTIC_KIND_MCV, InvalidOid,
                   ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS);
  get_attstatsslot(&histogram, statistics, STATISTIC_KIND_HISTOGRAM, InvalidOid,
                   ATTSTATSSLOT_VALUES);
  double rest = 1 - reinterpret_cast<Form_pg_statistic>(GETSTRUCT(statistics))->stanullfrac;
  ReleaseSysCache(statistics);
  const int most = common.nvalues + histogram.nvalues;
  *sample = {columns.types[column], most, common.nvalues,
             static_cast<Datum*>(palloc(sizeof(Datum) * (most + 1))),
             static_cast<double*>(palloc(sizeof(double) * (most + 1)))};
  for (int i = 0; i < common.nvalues; ++i) {
    sample->values[i] = common.values[i];
    sample->weights[i] = common.numbers[i];
    rest -= common.numbers[i];
  }
  for (int i = 0; i < histogram.nvalues; ++i) {
    sample->values[common.nvalues + i] = histogram.values[i];
    sample->weights[common.nvalues + i] = fmax(rest, 0) / histogram.nvalues;
  }
  return most > 0;
}

/// Null unless every column of the vector has statistics, and none of what they tell is hidden from
/// the user.
ColumnSample* load_samples(const SideColumns& columns, bool inherited) {
  if (!may_select(columns) || check_enable_rls(columns.relation, InvalidOid, true) == RLS_ENABLED)
    return nullptr;
  ColumnSample* const samples =
      static_cast<ColumnSample*>(palloc(sizeof(ColumnSample) * columns.count));
  for (int c = 0; c < columns.count; ++c)
    if (!load_sample(columns, c, inherited, &samples[c])) return nullptr;
  return samples;
}

SideEstimate estimate_side(const SideArguments& side) {
  SideEstimate result = {kDefaultRows, 0, {}, nullptr};
  const Relation relation = try_relation_open(side.relation, AccessShareLock);
  if (relation == nullptr) return result;
  if (find_vector_columns(relation, side, &result.columns).problem == ColumnProblem::kNone) {
    BlockNumber pages = 0;
    double rows = 0, visible;
    if (relation->rd_rel->relkind != RELKIND_VIEW)
      estimate_rel_size(relation, nullptr, &pages, &rows, &visible);
    if (rows > 0 || relation->rd_rel->relkind == RELKIND_RELATION) result.rows = fmax(rows, 1);
    result.pages = pages;
    result.samples =
        load_samples(result.columns, relation->rd_rel->relkind == RELKIND_PARTITIONED_TABLE);
  }
  relation_close(relation, NoLock);
  return result;
}

double number_of(Oid type, Datum value) {
  switch (type) {
    case INT2OID:
      return DatumGetInt16(value);
    case INT4OID:
      return DatumGetInt32(value);
    case INT8OID:
      return static_cast<double>(DatumGetInt64(value));
    case FLOAT4OID:
      return DatumGetFloat4(value);
    case NUMERICOID:
      return DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, value));
    default:
      return DatumGetFloat8(value);
  }
}

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

/// The share of pairs of different rows that are within the threshold. Where no sampled pair is,
/// half of one is assumed.
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

/// Pairs of different rows within eps, both orders counted.
double estimate_pairs(const JoinArguments& arguments, const SideEstimate& left,
                      const SideEstimate& right) {
  if (left.samples == nullptr || right.samples == nullptr ||
      left.columns.count != right.columns.count)
    return left.rows * fmin(right.rows, kDefaultNeighbors);
  const Threshold threshold = make_threshold(arguments.metric, arguments.eps);
  double pairs = left.rows * right.rows;
  for (int c = 0; c < left.columns.count; ++c)
    pairs *= matching_share(left.samples[c], right.samples[c], arguments.metric, threshold);
  return pairs;
}

Cost reading_cost(const SideEstimate& side) {
  return seq_page_cost * side.pages + (cpu_tuple_cost + cpu_operator_cost) * side.rows;
}

}  // namespace

JoinEstimate estimate_join(const JoinArguments& arguments, bool eps_known) {
  const bool self_join = arguments.function->self_join;
  SideEstimate left = estimate_side(arguments.left);
  const SideEstimate right = self_join ? left : estimate_side(arguments.right);
  if (!eps_known) left.samples = nullptr;
  double rows = estimate_pairs(arguments, left, right);
  if (arguments.pairs == PairSelection::kUnordered) rows /= 2;
  if (self_join && arguments.pairs == PairSelection::kAll) rows += left.rows;
  const Cost cost = kStartCost + reading_cost(left) + (self_join ? 0 : reading_cost(right));
  return {clamp_row_est(rows), cost};
}

}  // namespace gpujoin
