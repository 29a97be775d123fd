// Distances between two values: the operators <->, <=> and <+>, gpu_distance() and gpu_within().
// All go by the definition of core/distance.h, as the joins do.
#include "core/threshold.h"
#include "pg/reading/arguments.h"
#include "pg/types/sphere.h"
#include "pg/types/vector_datum.h"

extern "C" {
#include "lib/stringinfo.h"
#include "utils/geo_decls.h"
}

namespace gpujoin {
namespace {

struct varlena* vector_argument(FunctionCallInfo fcinfo, int number) {
  return PG_GETARG_VARLENA_PP(number);
}

/// Whether all coordinates are known.
bool is_known(const VectorView& view) { return view.problem != ValueProblem::kNullElement; }

/// Sets the place of a longitude and a latitude; raises an error if they are out of range.
void find_place(double longitude, double latitude, double* place) {
  if (!are_degrees(longitude, latitude))
    ereport(ERROR,
            (errcode(ERRCODE_DATA_EXCEPTION),
             errmsg("no place on the Earth has longitude %g and latitude %g", longitude, latitude),
             errhint("%s", kDegreesHint)));
  set_place(longitude, latitude, place);
}

/// The raw distance of the points that an engine compares in the place of two vectors of `dims`
/// coordinates.
template <class Coordinate>
double raw_distance_of(const Coordinate* left, const Coordinate* right, int dims,
                       PointMetric metric) {
  if (!metric.on_earth)
    return raw_distance(metric.metric, left, right, static_cast<std::uint32_t>(dims));
  if (dims != 2)
    ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                    errmsg("a vector of %d dimensions is no longitude and latitude", dims),
                    errhint("The metric haversine takes two numbers, in degrees.")));
  double a[3], b[3];
  find_place(left[0], left[1], a);
  find_place(right[0], right[1], b);
  return raw_distance(metric.metric, a, b, 3);
}

constexpr int kShownCoordinates = 3;

/// Returns `{1,2,3,...}`: the beginning of a vector, for messages.
template <class T>
char* beginning_of(const VectorView& view) {
  const auto* const coordinates = reinterpret_cast<const Unaligned<T>*>(view.data);
  StringInfoData text;
  initStringInfo(&text);
  for (int i = 0; i < std::min(view.dims, kShownCoordinates); ++i)
    appendStringInfo(&text, "%s%g", i > 0 ? "," : "", static_cast<double>(coordinates[i]));
  return psprintf("{%s%s}", text.data, view.dims > kShownCoordinates ? ",..." : "");
}

/// Raises the error for vectors of different lengths. A function does not know the rows, so that
/// their values stand for them.
template <class T>
[[noreturn]] void raise_mismatch(const VectorView& left, const VectorView& right) {
  ereport(
      ERROR,
      (errcode(ERRCODE_DATA_EXCEPTION),
       errmsg("vectors have different numbers of dimensions: %d and %d", left.dims, right.dims),
       errdetail("They are %s and %s.", beginning_of<T>(left), beginning_of<T>(right)),
       errhint("Compare vectors of the same number of dimensions only: add AND cardinality(a.v) "
               "= cardinality(b.v) to the join's condition.")));
  pg_unreachable();
}

/// The raw distance of two vectors; false where a coordinate of either is NULL.
template <class T>
bool find_raw(FunctionCallInfo fcinfo, PointMetric metric, double* raw) {
  struct varlena* const a = vector_argument(fcinfo, 0);
  struct varlena* const b = vector_argument(fcinfo, 1);
  const VectorView left = view_vector(a), right = view_vector(b);
  const bool known = is_known(left) && is_known(right);
  if (known) {
    check_form(left.problem, left.dims);
    check_form(right.problem, right.dims);
    if (left.dims != right.dims) raise_mismatch<T>(left, right);
    *raw = raw_distance_of(reinterpret_cast<const Unaligned<T>*>(left.data),
                           reinterpret_cast<const Unaligned<T>*>(right.data), left.dims, metric);
  }
  PG_FREE_IF_COPY(a, 0);
  PG_FREE_IF_COPY(b, 1);
  return known;
}

double distance_of(double raw, PointMetric metric) {
  const double found = distance_from_raw(metric.metric, raw);
  return metric.on_earth ? arc_of_chord(found) : found;
}

template <class T>
Datum distance(FunctionCallInfo fcinfo, PointMetric metric) {
  double raw;
  if (!find_raw<T>(fcinfo, metric, &raw)) PG_RETURN_NULL();
  PG_RETURN_FLOAT8(distance_of(raw, metric));
}

/// The metric that an argument names; L2 for calls without it.
PointMetric metric_argument(FunctionCallInfo fcinfo, int number) {
  return PG_NARGS() > number ? read_metric(PG_GETARG_DATUM(number))
                             : PointMetric{Metric::kL2, false};
}

/// The threshold of the eps and metric that the function was last called with.
struct CachedThreshold {
  double eps;
  PointMetric metric;
  double raw;
};

/// Threshold::raw of argument 2, found once as long as it stays the same.
double threshold_argument(FunctionCallInfo fcinfo, PointMetric metric) {
  const double eps = PG_GETARG_FLOAT8(2);
  FmgrInfo* const function = fcinfo->flinfo;
  CachedThreshold* cached = static_cast<CachedThreshold*>(function->fn_extra);
  if (cached != nullptr && cached->eps == eps && cached->metric.metric == metric.metric &&
      cached->metric.on_earth == metric.on_earth)
    return cached->raw;
  if (!(eps >= 0) || std::isinf(eps))
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("eps must be a finite number that is not negative, not %g", eps),
                    errhint("Pass the largest distance that two values may have.")));
  if (cached == nullptr) {
    cached = static_cast<CachedThreshold*>(
        MemoryContextAlloc(function->fn_mcxt, sizeof(CachedThreshold)));
    function->fn_extra = cached;
  }
  *cached = {eps, metric, make_threshold(metric.metric, engine_radius(metric, eps)).raw};
  return cached->raw;
}

template <class T>
Datum within(FunctionCallInfo fcinfo) {
  const PointMetric metric = metric_argument(fcinfo, 3);
  const double threshold = threshold_argument(fcinfo, metric);
  double raw;
  if (!find_raw<T>(fcinfo, metric, &raw)) PG_RETURN_NULL();
  PG_RETURN_BOOL(raw <= threshold);
}

double raw_of_points(FunctionCallInfo fcinfo, PointMetric metric) {
  const Point* const a = PG_GETARG_POINT_P(0);
  const Point* const b = PG_GETARG_POINT_P(1);
  const double left[] = {a->x, a->y}, right[] = {b->x, b->y};
  return raw_distance_of(left, right, 2, metric);
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
PG_FUNCTION_INFO_V1(gpujoin_distance_point);

PGDLLEXPORT Datum gpujoin_distance_float4(PG_FUNCTION_ARGS) {
  return gpujoin::distance<float>(fcinfo, gpujoin::metric_argument(fcinfo, 2));
}

PGDLLEXPORT Datum gpujoin_distance_float8(PG_FUNCTION_ARGS) {
  return gpujoin::distance<double>(fcinfo, gpujoin::metric_argument(fcinfo, 2));
}

PGDLLEXPORT Datum gpujoin_cosine_distance_float4(PG_FUNCTION_ARGS) {
  return gpujoin::distance<float>(fcinfo, {gpujoin::Metric::kCosine, false});
}

PGDLLEXPORT Datum gpujoin_cosine_distance_float8(PG_FUNCTION_ARGS) {
  return gpujoin::distance<double>(fcinfo, {gpujoin::Metric::kCosine, false});
}

PGDLLEXPORT Datum gpujoin_l1_distance_float4(PG_FUNCTION_ARGS) {
  return gpujoin::distance<float>(fcinfo, {gpujoin::Metric::kL1, false});
}

PGDLLEXPORT Datum gpujoin_l1_distance_float8(PG_FUNCTION_ARGS) {
  return gpujoin::distance<double>(fcinfo, {gpujoin::Metric::kL1, false});
}

PGDLLEXPORT Datum gpujoin_within_float4(PG_FUNCTION_ARGS) { return gpujoin::within<float>(fcinfo); }

PGDLLEXPORT Datum gpujoin_within_float8(PG_FUNCTION_ARGS) {
  return gpujoin::within<double>(fcinfo);
}

PGDLLEXPORT Datum gpujoin_within_point(PG_FUNCTION_ARGS) {
  const gpujoin::PointMetric metric = gpujoin::metric_argument(fcinfo, 3);
  const double threshold = gpujoin::threshold_argument(fcinfo, metric);
  PG_RETURN_BOOL(gpujoin::raw_of_points(fcinfo, metric) <= threshold);
}

PGDLLEXPORT Datum gpujoin_distance_point(PG_FUNCTION_ARGS) {
  const gpujoin::PointMetric metric = gpujoin::metric_argument(fcinfo, 2);
  PG_RETURN_FLOAT8(gpujoin::distance_of(gpujoin::raw_of_points(fcinfo, metric), metric));
}
}
