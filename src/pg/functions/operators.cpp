// Distances between two values: the operators <->, <=> and <+>, gpu_distance() and gpu_within().
// All go by the definition of core/distance.h, as the joins do.
#include "core/threshold.h"
#include "pg/reading/arguments.h"
#include "pg/types/vector_datum.h"

extern "C" {
#include "utils/geo_decls.h"
}

namespace gpujoin {
namespace {

struct varlena* vector_argument(FunctionCallInfo fcinfo, int number) {
  return PG_GETARG_VARLENA_PP(number);
}

/// Whether all coordinates are known.
bool is_known(const VectorView& view) { return view.problem != ValueProblem::kNullElement; }

/// The raw distance of two vectors; false where a coordinate of either is NULL.
template <class T>
bool find_raw(FunctionCallInfo fcinfo, Metric metric, double* raw) {
  struct varlena* const a = vector_argument(fcinfo, 0);
  struct varlena* const b = vector_argument(fcinfo, 1);
  const VectorView left = view_vector(a), right = view_vector(b);
  const bool known = is_known(left) && is_known(right);
  if (known) {
    check_form(left.problem, left.dims);
    check_form(right.problem, right.dims);
    if (left.dims != right.dims)
      ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                      errmsg("vectors have different numbers of dimensions: %d and %d", left.dims,
                             right.dims),
                      errhint("Distances are between vectors of the same number of dimensions.")));
    *raw = raw_distance(metric, reinterpret_cast<const Unaligned<T>*>(left.data),
                        reinterpret_cast<const Unaligned<T>*>(right.data),
                        static_cast<std::uint32_t>(left.dims));
  }
  PG_FREE_IF_COPY(a, 0);
  PG_FREE_IF_COPY(b, 1);
  return known;
}

template <class T>
Datum distance(FunctionCallInfo fcinfo, Metric metric) {
  double raw;
  if (!find_raw<T>(fcinfo, metric, &raw)) PG_RETURN_NULL();
  PG_RETURN_FLOAT8(distance_from_raw(metric, raw));
}

/// The metric that an argument names; L2 for calls without it.
Metric metric_argument(FunctionCallInfo fcinfo, int number) {
  return PG_NARGS() > number ? read_metric(PG_GETARG_DATUM(number)) : Metric::kL2;
}

/// The threshold of the eps and metric that the function was last called with.
struct CachedThreshold {
  double eps;
  Metric metric;
  double raw;
};

/// Threshold::raw of argument 2, found once as long as it stays the same.
double threshold_argument(FunctionCallInfo fcinfo, Metric metric) {
  const double eps = PG_GETARG_FLOAT8(2);
  FmgrInfo* const function = fcinfo->flinfo;
  CachedThreshold* cached = static_cast<CachedThreshold*>(function->fn_extra);
  if (cached != nullptr && cached->eps == eps && cached->metric == metric) return cached->raw;
  if (!(eps >= 0) || std::isinf(eps))
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("eps must be a finite number that is not negative, not %g", eps),
                    errhint("Pass the largest distance that two values may have.")));
  if (cached == nullptr) {
    cached = static_cast<CachedThreshold*>(
        MemoryContextAlloc(function->fn_mcxt, sizeof(CachedThreshold)));
    function->fn_extra = cached;
  }
  *cached = {eps, metric, make_threshold(metric, eps).raw};
  return cached->raw;
}

template <class T>
Datum within(FunctionCallInfo fcinfo) {
  const Metric metric = metric_argument(fcinfo, 3);
  const double threshold = threshold_argument(fcinfo, metric);
  double raw;
  if (!find_raw<T>(fcinfo, metric, &raw)) PG_RETURN_NULL();
  PG_RETURN_BOOL(raw <= threshold);
}

double raw_l2_points(FunctionCallInfo fcinfo) {
  const Point* const a = PG_GETARG_POINT_P(0);
  const Point* const b = PG_GETARG_POINT_P(1);
  const double left[] = {a->x, a->y}, right[] = {b->x, b->y};
  return raw_distance<Metric::kL2>(left, right, 2);
}

}  // namespace
}  // namespace gpujoin

extern "C" {

PG_FUNCTION_INFO_V1(gpujoin_distance_float4);
PG_FUNCTION_INFO_V1(gpujoin_distance_float8);
PG_FUNCTION_INFO_V1(gpujoin_cosine_distance_float4);
PG_FUNCTION_INFO_V1(gpujoin_cosine_distance_float8);
PG_FUNCTION_INFO_V1(gpujoin_l1_distance_float4);
PG_FUNCTION_INFO_V1(gpujoin_l1_distance_float8);
PG_FUNCTION_INFO_V1(gpujoin_within_float4);
PG_FUNCTION_INFO_V1(gpujoin_within_float8);
PG_FUNCTION_INFO_V1(gpujoin_within_point);

PGDLLEXPORT Datum gpujoin_distance_float4(PG_FUNCTION_ARGS) {
  return gpujoin::distance<float>(fcinfo, gpujoin::metric_argument(fcinfo, 2));
}

PGDLLEXPORT Datum gpujoin_distance_float8(PG_FUNCTION_ARGS) {
  return gpujoin::distance<double>(fcinfo, gpujoin::metric_argument(fcinfo, 2));
}

PGDLLEXPORT Datum gpujoin_cosine_distance_float4(PG_FUNCTION_ARGS) {
  return gpujoin::distance<float>(fcinfo, gpujoin::Metric::kCosine);
}

PGDLLEXPORT Datum gpujoin_cosine_distance_float8(PG_FUNCTION_ARGS) {
  return gpujoin::distance<double>(fcinfo, gpujoin::Metric::kCosine);
}

PGDLLEXPORT Datum gpujoin_l1_distance_float4(PG_FUNCTION_ARGS) {
  return gpujoin::distance<float>(fcinfo, gpujoin::Metric::kL1);
}

PGDLLEXPORT Datum gpujoin_l1_distance_float8(PG_FUNCTION_ARGS) {
  return gpujoin::distance<double>(fcinfo, gpujoin::Metric::kL1);
}

PGDLLEXPORT Datum gpujoin_within_float4(PG_FUNCTION_ARGS) { return gpujoin::within<float>(fcinfo); }

PGDLLEXPORT Datum gpujoin_within_float8(PG_FUNCTION_ARGS) {
  return gpujoin::within<double>(fcinfo);
}

PGDLLEXPORT Datum gpujoin_within_point(PG_FUNCTION_ARGS) {
  const double threshold = gpujoin::threshold_argument(fcinfo, gpujoin::Metric::kL2);
  PG_RETURN_BOOL(gpujoin::raw_l2_points(fcinfo) <= threshold);
}
}
