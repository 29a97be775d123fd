// gpu_postgis_clusters(): what PostGIS's window functions for clusters return, for partitions of
// points; others it leaves to them. The planner puts it in their place.
#include "pg/executor/cluster_node.h"
#include "pg/executor/cluster_work.h"
#include "pg/executor/custom_scan.h"
#include "pg/types/extension_object.h"
#include "pg/types/plane_point.h"

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
  bool may_serve;        ///< PostGIS's arithmetic is the definition's
  bool left;             ///< the partition at hand is left to PostGIS
  WindowReport* report;  ///< or null
};

/// Whether PostGIS's distances are those of the definition, asked once for its function.
bool has_known_arithmetic(Oid function, Oid geometry) {
  static Oid asked = InvalidOid;
  static bool known = false;
  if (asked != function) {
    known = measures_by_definition(get_func_namespace(function), geometry);
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
  site->may_serve = has_known_arithmetic(function, type);
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

/// The clusters of the points of the partition, where PostGIS would find the same. Else why not.
const char* cluster_points(WindowObject window, PostgisSite* site, std::int64_t rows) {
  bool no_eps, no_points;
  const double eps = DatumGetFloat8(WinGetFuncArgCurrent(window, 1, &no_eps));
  const std::int32_t min_points = DatumGetInt32(WinGetFuncArgCurrent(window, 2, &no_points));
  if (!site->may_serve) return "PostGIS computes distances in another way";
  if (no_eps || no_points || !(eps >= 0 && eps <= kFarthest) || min_points < 0)
    return "no radius and number of points are given";
  if (!begin_partition(&site->clusters, rows, ScalarType::kFloat64))
    return "the rows do not fit in memory";
  ClusterWork* const work = site->clusters.work;
  work->points.dims = 2;
  if (affordable_rows(work->points, work->points.limit) < static_cast<std::uint64_t>(rows))
    return "the rows do not fit in memory";
  instr_time start, end;
  INSTR_TIME_SET_CURRENT(start);
  if (!gather_points(window, rows, work)) return "a geometry is no point";
  const Dataset points = finish_points(&work->points);
  if (!finds_neighbors_by_definition(points, eps))
    return "two points are so nearly at the radius that rounding decides";
  INSTR_TIME_SET_CURRENT(end);
  INSTR_TIME_SUBTRACT(end, start);
  work->run.report.read_ms = INSTR_TIME_GET_MILLISEC(end);
  const Output output =
      Output::clusters(static_cast<std::uint64_t>(std::max(min_points, 1)), BorderRule::kFirst);
  if (!find_clusters(&site->clusters, rows, points, {Metric::kL2, false}, eps, output, true))
    return "the join needs more memory than gpujoin.host_memory_limit leaves";
  if (site->report != nullptr) note_served(site->report, &work->run);
  return nullptr;
}

/// With a partition's first row. What the row before left belongs to another partition.
void begin_rows(WindowObject window, PostgisSite* site) {
  const std::int64_t rows = WinGetPartitionRowCount(window);
  const char* const reason = cluster_points(window, site, rows);
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
