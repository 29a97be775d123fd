// gpu_cluster_dbscan(): clusters of the rows of a window's partition, in any query.
#include "pg/reading/arguments.h"
#include "pg/reading/unit_warnings.h"
#include "pg/types/sphere.h"
#include "pg/types/value_types.h"
#include "pg/windows/cluster_work.h"

extern "C" {
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "windowapi.h"

PG_FUNCTION_INFO_V1(gpujoin_cluster_dbscan);
}

namespace gpujoin {
namespace {

constexpr const char* kName = "gpu_cluster_dbscan";

/// What a partition's first row finds for all; zero before.
struct PartitionClusters {
  bool found;
  bool null;  ///< an argument is
};

/// A call site, and the type of its values.
struct WindowSite {
  ClusterSite clusters;
  const ValueType* type;
  bool warned;  ///< units were checked
};

struct ClusterArguments {
  bool null;
  double eps;
  std::uint64_t min_points;
  PointMetric metric;
};

/// What values become.
ValueForm form_of(PointMetric metric) {
  return metric.on_earth ? ValueForm::kPlace : ValueForm::kPoint;
}

/// The call site, made with its first row.
WindowSite* site_of(FunctionCallInfo fcinfo) {
  if (fcinfo->flinfo->fn_extra == nullptr) {
    const Oid argument = get_fn_expr_argtype(fcinfo->flinfo, 0);
    const ValueType* const type =
        OidIsValid(argument) ? find_value_type(getBaseType(argument)) : nullptr;
    if (type == nullptr || !is_argument(*type, ValueForm::kPoint))
      ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                      errmsg("%s() cannot take values of type %s", kName,
                             OidIsValid(argument) ? format_type_be(argument) : "unknown"),
                      errhint("Pass points or vectors: double precision[], real[], point, or what "
                              "an extension has, for example ARRAY[x, y]::double precision[].")));
    const MemoryContext context = fcinfo->flinfo->fn_mcxt;
    auto* const site =
        static_cast<WindowSite*>(MemoryContextAllocZero(context, sizeof(WindowSite)));
    site->clusters.context = context;
    site->clusters.name = kName;
    site->type = type;
    fcinfo->flinfo->fn_extra = site;
  }
  return static_cast<WindowSite*>(fcinfo->flinfo->fn_extra);
}

/// The arguments besides the values, as the current row has them.
ClusterArguments read_cluster_arguments(WindowObject window) {
  bool nulls[4];
  const Datum eps = WinGetFuncArgCurrent(window, 1, &nulls[1]);
  const Datum min_points = WinGetFuncArgCurrent(window, 2, &nulls[2]);
  const Datum metric = WinGetFuncArgCurrent(window, 3, &nulls[3]);
  ClusterArguments arguments = {};
  arguments.null = nulls[1];
  if (arguments.null) return arguments;
  arguments.eps = check_eps(DatumGetFloat8(eps), Shape::kPoints);
  arguments.min_points = nulls[2] ? kDefaultMinPoints : check_min_points(DatumGetInt64(min_points));
  arguments.metric = nulls[3] ? PointMetric{Metric::kL2, false} : read_metric(metric);
  return arguments;
}

[[noreturn]] void raise_value(const ClusterWork& work, ValueFinding found) {
  switch (found.problem) {
    case ValueProblem::kIncomparable:
      ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                      errmsg("a vector is no longitude and latitude of the Earth"),
                      errhint("%s", kDegreesHint)));
      break;
    case ValueProblem::kMismatch:
      ereport(ERROR,
              (errcode(ERRCODE_DATA_EXCEPTION),
               errmsg("vectors of a window's partition have different numbers of dimensions: "
                      "%u and %u",
                      work.shape.dims, found.dims),
               errhint("Put vectors of each number of dimensions into partitions of their own, "
                       "for example by PARTITION BY cardinality(v).")));
      break;
    case ValueProblem::kOtherSrid:
      ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                      errmsg("geometries of a window's partition have different SRIDs"),
                      errhint("Transform the geometries to one SRID with ST_Transform().")));
      break;
    case ValueProblem::kNoDegrees:
      ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                      errmsg("a geometry of a window's partition is not in degrees"),
                      errhint("%s", kGeometryDegreesHint)));
      break;
    case ValueProblem::kTooManyDimensions:
      ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                      errmsg("a vector has %u dimensions", found.dims),
                      errhint("A vector has at most %u dimensions.", kMaxDimensions)));
      break;
    case ValueProblem::kEmpty:
    case ValueProblem::kMultidimensional:
      ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                      errmsg("%s() needs vectors, and an array %s", kName,
                             found.problem == ValueProblem::kEmpty ? "is empty"
                                                                   : "has several dimensions"),
                      errhint("A vector is a one-dimensional array of one element or more. Rows "
                              "without one hold NULL, and are noise.")));
      break;
    default:
      ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                      errmsg("%s() takes points, and a value is none", kName),
                      errhint("Pass points, for example ST_Centroid() of geometries or the center "
                              "of a cube.")));
  }
  pg_unreachable();
}

void check_form(const ValueType& type, ValueForm form) {
  if (!has_form(type, form))
    ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                    errmsg("values of type %s are no longitudes and latitudes", type.name),
                    errhint("By the metric haversine pass ARRAY[lon, lat] of double precision, a "
                            "point, or a geometry of SRID 4326.")));
}

/// Collects the values of all rows of the partition, named by their places in the window's order.
/// NULL, and what has a NULL in it, matches nothing.
void gather_values(WindowObject window, const ValueType& type, ValueForm form, std::int64_t rows,
                   ClusterWork* work) {
  const MemoryContext caller = MemoryContextSwitchTo(work->scratch);
  for (std::int64_t row = 0; row < rows; ++row) {
    CHECK_FOR_INTERRUPTS();
    bool is_null, is_out;
    const Datum value = WinGetFuncArgInPartition(window, 0, static_cast<int>(row), WINDOW_SEEK_HEAD,
                                                 false, &is_null, &is_out);
    if (!is_null) {
      const ValueFinding found = add_value(type, form, &work->points, &work->shape, row, value);
      if (found.problem != ValueProblem::kNone && found.problem != ValueProblem::kNullElement)
        raise_value(*work, found);
    }
    MemoryContextReset(work->scratch);
  }
  MemoryContextSwitchTo(caller);
}

/// The clusters of all rows of the partition. False: an argument is NULL.
bool cluster_partition(FunctionCallInfo fcinfo, WindowObject window) {
  WindowSite* const site = site_of(fcinfo);
  const ClusterArguments arguments = read_cluster_arguments(window);
  if (arguments.null) return false;
  const std::int64_t rows = WinGetPartitionRowCount(window);
  const PointMetric metric = arguments.metric;
  const ValueForm form = form_of(metric);
  check_form(*site->type, form);
  if (!begin_partition(&site->clusters, rows, scalar_of(*site->type, form)))
    ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                    errmsg("the %lld rows of a window's partition do not fit in memory",
                           static_cast<long long>(rows)),
                    errhint("Raise gpujoin.host_memory_limit, or cluster fewer rows at a time by "
                            "PARTITION BY.")));
  ClusterWork* const work = site->clusters.work;
  work->points.spill = &work->run.spill;
  instr_time start, end;
  INSTR_TIME_SET_CURRENT(start);
  gather_values(window, *site->type, form, rows, work);
  if (!site->warned && work->points.rows > 0) {
    warn_of_radius(metric, arguments.eps, site->type == &kGeometryType, work->shape.srid);
    site->warned = true;
  }
  INSTR_TIME_SET_CURRENT(end);
  INSTR_TIME_SUBTRACT(end, start);
  work->run.report.read_ms = INSTR_TIME_GET_MILLISEC(end);
  find_clusters(&site->clusters, rows, finish_points(&work->points), metric, arguments.eps,
                Output::clusters(arguments.min_points), false);
  end_partition(&site->clusters, rows);
  return true;
}

}  // namespace
}  // namespace gpujoin

extern "C" {

PGDLLEXPORT Datum gpujoin_cluster_dbscan(PG_FUNCTION_ARGS) {
  using namespace gpujoin;
  const WindowObject window = PG_WINDOW_OBJECT();
  if (!WindowObjectIsValid(window))
    ereport(ERROR, (errcode(ERRCODE_WINDOWING_ERROR), errmsg("%s() is a window function", kName),
                    errhint("Call it with an OVER clause.")));
  auto* const clusters = static_cast<PartitionClusters*>(
      WinGetPartitionLocalMemory(window, sizeof(PartitionClusters)));
  if (!clusters->found) {
    clusters->null = !cluster_partition(fcinfo, window);
    clusters->found = true;
  }
  if (clusters->null) PG_RETURN_NULL();
  const std::uint32_t number = site_of(fcinfo)->clusters.numbers[WinGetCurrentPosition(window)];
  if (number == kInNoCluster) PG_RETURN_NULL();
  PG_RETURN_INT64(number);
}
}
