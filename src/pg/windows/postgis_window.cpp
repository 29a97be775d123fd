// gpu_postgis_clusters(): what PostGIS's window functions for clusters return, for partitions of
// points and of other geometries; what is neither it leaves to them. The planner puts it in their
// place.
#include "pg/executor/custom_scan.h"
#include "pg/types/extension_object.h"
#include "pg/types/plane_point.h"
#include "pg/windows/cluster_node.h"
#include "pg/windows/cluster_work.h"
#include "pg/windows/shape_clusters.h"

extern "C" {
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "windowapi.h"

PG_FUNCTION_INFO_V1(gpujoin_postgis_clusters);
}

namespace gpujoin {
namespace {

constexpr const char* kName = "gpu_postgis_clusters";

struct PostgisSite {
  ClusterSite clusters;
  FmgrInfo original;
  Oid schema, geometry;  ///< PostGIS's
  bool may_serve;        ///< its arithmetic is the definition's
  bool left;             ///< the partition at hand is left to PostGIS
  WindowReport* report;  ///< or null
};

/// Whether PostGIS's distances are those of the definition, asked once for its function.
bool has_known_arithmetic(Oid function, Oid schema, Oid geometry) {
  static Oid asked = InvalidOid;
  static bool known = false;
  if (asked != function) {
    known = measures_by_definition(schema, geometry);
    asked = function;
  }
  return known;
}

/// The call site, made with its first row. Anybody may call the function by its name: the other
/// one, which comes last, has to be one of PostGIS's, and the values have to be its.
PostgisSite* make_site(FunctionCallInfo fcinfo, WindowObject window) {
  bool is_null;
  const Oid function = DatumGetObjectId(WinGetFuncArgCurrent(window, 3, &is_null));
  const Oid type = getBaseType(get_fn_expr_argtype(fcinfo->flinfo, 0));
  if (is_null || cluster_window(function) == ClusterWindow::kNone ||
      !is_base_type_of(type, "postgis", "geometry"))
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("%s() stands for a window function of PostGIS", kName),
                    errhint("Call ST_ClusterDBSCAN() or, of any type, gpu_cluster_dbscan().")));
  check_execute_privilege(function);
  const MemoryContext context = fcinfo->flinfo->fn_mcxt;
  auto* const site =
      static_cast<PostgisSite*>(MemoryContextAllocZero(context, sizeof(PostgisSite)));
  site->clusters.context = context;
  site->clusters.name = kCustomScanName;
  site->report = find_window_report(fcinfo->flinfo);
  fmgr_info_cxt(function, &site->original, context);
  fmgr_info_set_expr(fcinfo->flinfo->fn_expr, &site->original);
  site->schema = get_func_namespace(function);
  site->geometry = type;
  site->may_serve = has_known_arithmetic(function, site->schema, type);
  fcinfo->flinfo->fn_extra = site;
  return site;
}

/// Collects the points of all rows of the partition, named by their places in the window's order.
/// An empty geometry is nowhere. False: one is no point.
bool gather_points(WindowObject window, std::int64_t rows, ClusterWork* work) {
  const MemoryContext caller = MemoryContextSwitchTo(work->scratch);
  bool points = true;
  for (std::int64_t row = 0; points && row < rows; ++row) {
    CHECK_FOR_INTERRUPTS();
    bool is_null, is_out;
    const Datum value = WinGetFuncArgInPartition(window, 0, static_cast<int>(row), WINDOW_SEEK_HEAD,
                                                 false, &is_null, &is_out);
    if (!is_null) {
      PlanePoint found = read_plane_point(value);
      points = found.kind != PlaneKind::kOther;
      if (found.kind == PlaneKind::kEmpty) found.x[0] = found.x[1] = NAN;
      if (points) std::memcpy(add_point(&work->points, row), found.x, sizeof found.x);
    }
    MemoryContextReset(work->scratch);
  }
  MemoryContextSwitchTo(caller);
  return points;
}

/// What a partition's first row has for arguments.
struct Density {
  double eps;
  std::int32_t min_points;  ///< 1 or more
};

/// False: PostGIS refuses them, or cannot measure so far.
bool read_density(WindowObject window, Density* density) {
  bool no_eps, no_points;
  density->eps = DatumGetFloat8(WinGetFuncArgCurrent(window, 1, &no_eps));
  const std::int32_t min_points = DatumGetInt32(WinGetFuncArgCurrent(window, 2, &no_points));
  density->min_points = std::max(min_points, 1);
  return !no_eps && !no_points && density->eps >= 0 && density->eps <= kFarthest && min_points >= 0;
}

constexpr const char* kNoPoint = "a geometry is no point";
constexpr const char* kNoMemory = "the rows do not fit in memory";

bool fit_in_memory(const PointBuffer& points, std::int64_t rows) {
  return affordable_rows(points, points.limit) >= static_cast<std::uint64_t>(rows);
}

/// Finds the clusters of the points of the partition, where PostGIS would find the same. Else
/// returns why not: kNoPoint, or another reason.
const char* cluster_points(WindowObject window, PostgisSite* site, std::int64_t rows,
                           const Density& density) {
  ClusterWork* const work = site->clusters.work;
  instr_time start, end;
  INSTR_TIME_SET_CURRENT(start);
  if (!gather_points(window, rows, work)) return kNoPoint;
  const Dataset points = finish_points(&work->points);
  if (!finds_neighbors_by_definition(points, density.eps))
    return "two points are so nearly at the radius that rounding decides";
  INSTR_TIME_SET_CURRENT(end);
  INSTR_TIME_SUBTRACT(end, start);
  work->run.report.read_ms = INSTR_TIME_GET_MILLISEC(end);
  const Output output =
      Output::clusters(static_cast<std::uint64_t>(density.min_points), BorderRule::kFirst);
  if (!find_clusters(&site->clusters, rows, points, {Metric::kL2, false}, density.eps, output,
                     true))
    return "the join needs more memory than gpujoin.host_memory_limit leaves";
  return nullptr;
}

/// Collects the geometries of all rows of the partition. Returns why PostGIS has to find their
/// clusters, or null.
const char* gather_shapes(WindowObject window, std::int64_t rows, ClusterSite* site,
                          ClusterShapes* shapes) {
  ClusterWork* const work = site->work;
  const MemoryContext caller = MemoryContextSwitchTo(work->scratch);
  const char* reason = nullptr;
  for (std::int64_t row = 0; reason == nullptr && row < rows; ++row) {
    CHECK_FOR_INTERRUPTS();
    NullableDatum value;
    bool is_out;
    value.value = WinGetFuncArgInPartition(window, 0, static_cast<int>(row), WINDOW_SEEK_HEAD,
                                           false, &value.isnull, &is_out);
    reason = add_shape(site, shapes, row, value);
    MemoryContextReset(work->scratch);
  }
  MemoryContextSwitchTo(caller);
  return reason;
}

/// The same for geometries that are not all points.
const char* cluster_shapes(WindowObject window, PostgisSite* site, std::int64_t rows,
                           const Density& density) {
  ClusterSite* const clusters = &site->clusters;
  ClusterShapes shapes = {};
  if (!begin_shapes(clusters, density.eps, site->schema, site->geometry, &shapes))
    return "PostGIS has no ST_DWithin()";
  if (!fit_in_memory(clusters->work->points, rows)) return kNoMemory;
  instr_time start, end;
  INSTR_TIME_SET_CURRENT(start);
  const char* reason = gather_shapes(window, rows, clusters, &shapes);
  INSTR_TIME_SET_CURRENT(end);
  INSTR_TIME_SUBTRACT(end, start);
  clusters->work->run.report.read_ms = INSTR_TIME_GET_MILLISEC(end);
  if (reason == nullptr)
    reason = find_shape_clusters(clusters, &shapes, rows,
                                 static_cast<std::uint32_t>(density.min_points));
  end_shapes(&shapes);
  return reason;
}

/// Finds the clusters of the partition, or returns why PostGIS has to.
const char* cluster_partition(WindowObject window, PostgisSite* site, std::int64_t rows) {
  Density density;
  if (!read_density(window, &density)) return "no radius and number of points are given";
  if (!begin_partition(&site->clusters, rows, ScalarType::kFloat64)) return kNoMemory;
  ClusterWork* const work = site->clusters.work;
  work->points.dims = 2;
  if (!fit_in_memory(work->points, rows)) return kNoMemory;
  const char* reason = site->may_serve ? cluster_points(window, site, rows, density) : kNoPoint;
  if (reason == kNoPoint) reason = cluster_shapes(window, site, rows, density);
  if (reason == nullptr && site->report != nullptr) note_served(site->report, &work->run);
  return reason;
}

/// With a partition's first row. What the row before left belongs to another partition.
void begin_rows(WindowObject window, PostgisSite* site) {
  const std::int64_t rows = WinGetPartitionRowCount(window);
  const char* const reason = cluster_partition(window, site, rows);
  site->left = reason != nullptr;
  if (site->clusters.work != nullptr) end_partition(&site->clusters, rows);
  if (!site->left || site->report == nullptr) return;
  ++site->report->left;
  site->report->reason = reason;
}

/// PostGIS's own function, for the same window.
Datum call_original(FunctionCallInfo fcinfo, PostgisSite* site) {
  FmgrInfo* const own = fcinfo->flinfo;
  fcinfo->flinfo = &site->original;
  const Datum result = FunctionCallInvoke(fcinfo);
  fcinfo->flinfo = own;
  return result;
}

}  // namespace
}  // namespace gpujoin

extern "C" {

PGDLLEXPORT Datum gpujoin_postgis_clusters(PG_FUNCTION_ARGS) {
  using namespace gpujoin;
  const WindowObject window = PG_WINDOW_OBJECT();
  if (!WindowObjectIsValid(window))
    ereport(ERROR, (errcode(ERRCODE_WINDOWING_ERROR), errmsg("%s() is a window function", kName),
                    errhint("Call ST_ClusterDBSCAN() with an OVER clause.")));
  auto* site = static_cast<PostgisSite*>(fcinfo->flinfo->fn_extra);
  if (site == nullptr) site = make_site(fcinfo, window);
  const std::int64_t row = WinGetCurrentPosition(window);
  if (row == 0) begin_rows(window, site);
  if (site->left) return call_original(fcinfo, site);
  const std::uint32_t number = site->clusters.numbers[row];
  if (number == kInNoCluster) PG_RETURN_NULL();
  PG_RETURN_INT32(static_cast<std::int32_t>(number));
}
}
