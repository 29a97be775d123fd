// gpu_cluster_dbscan(): clusters of the rows of a window's partition, in any query.
#include "core/cluster.h"
#include "pg/executor/engine_run.h"
#include "pg/reading/arguments.h"
#include "pg/store/huge_array.h"
#include "pg/types/value_type.h"

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
constexpr std::uint32_t kNoNumber = ~std::uint32_t{0};

/// What a partition's first row finds for all; zero before.
struct PartitionClusters {
  bool found;
  std::uint32_t* numbers;  ///< [rows] or kNoNumber; null: an argument is NULL
};

std::uint64_t number_bytes(std::int64_t rows) {
  return static_cast<std::uint64_t>(rows) * sizeof(std::uint32_t);
}

/// The work on a partition, in a context of its own that ends with it.
struct ClusterWork {
  MemoryContext context, scratch;
  EngineRun run;
  PointBuffer points;
  ValueShape shape;
};

struct ClusterArguments {
  bool null;
  double eps;
  std::uint64_t min_points;
  Metric metric;
};

/// The type of the values, looked up once for a call site.
const ValueType* value_type_of(FunctionCallInfo fcinfo) {
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
    fcinfo->flinfo->fn_extra = const_cast<ValueType*>(type);
  }
  return static_cast<const ValueType*>(fcinfo->flinfo->fn_extra);
}

/// The arguments besides the values, as the current row has them.
ClusterArguments read_cluster_arguments(WindowObject window) {
  bool nulls[4];
  const Datum eps = WinGetFuncArgCurrent(window, 1, &nulls[1]);
  const Datum min_points = WinGetFuncArgCurrent(window, 2, &nulls[2]);
  const Datum metric = WinGetFuncArgCurrent(window, 3, &nulls[3]);
  ClusterArguments arguments = {};
  arguments.null = nulls[1] || nulls[2];
  if (arguments.null) return arguments;
  arguments.eps = check_eps(DatumGetFloat8(eps), Shape::kPoints);
  arguments.min_points = check_min_points(DatumGetInt64(min_points));
  arguments.metric = nulls[3] ? Metric::kL2 : read_metric(metric);
  return arguments;
}

[[noreturn]] void raise_value(const ClusterWork& work, ValueFinding found) {
  switch (found.problem) {
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

ClusterWork* begin_work(MemoryContext parent, const ValueType& type, std::int64_t rows) {
  const MemoryContext context =
      AllocSetContextCreate(parent, "gpujoin window", ALLOCSET_DEFAULT_SIZES);
  auto* const work =
      static_cast<ClusterWork*>(MemoryContextAllocZero(context, sizeof(ClusterWork)));
  work->context = context;
  work->scratch = AllocSetContextCreate(context, "gpujoin window value", ALLOCSET_DEFAULT_SIZES);
  init_engine_run(&work->run, context, kName);
  begin_service_join(&work->run, static_cast<double>(rows));
  work->points.context = context;
  work->points.source = "a window's partition";
  work->points.scalar = scalar_of(type, ValueForm::kPoint);
  work->points.limit = dataset_share(&work->run, 1);
  work->points.shares = work->run.service.socket >= 0;
  work->shape.as_stored = true;
  return work;
}

/// Collects the values of all rows of the partition, named by their places in the window's order.
/// NULL, and what has a NULL in it, matches nothing.
void gather_values(WindowObject window, const ValueType& type, std::int64_t rows,
                   ClusterWork* work) {
  const MemoryContext caller = MemoryContextSwitchTo(work->scratch);
  for (std::int64_t row = 0; row < rows; ++row) {
    CHECK_FOR_INTERRUPTS();
    bool is_null, is_out;
    const Datum value = WinGetFuncArgInPartition(window, 0, static_cast<int>(row), WINDOW_SEEK_HEAD,
                                                 false, &is_null, &is_out);
    if (!is_null) {
      const ValueFinding found =
          add_value(type, ValueForm::kPoint, &work->points, &work->shape, row, value);
      if (found.problem != ValueProblem::kNone && found.problem != ValueProblem::kNullElement)
        raise_value(*work, found);
    }
    MemoryContextReset(work->scratch);
  }
  MemoryContextSwitchTo(caller);
}

/// Runs the engine, and sets the numbers of rows that are in clusters. An engine is another
/// library: what it names is checked before memory is written there.
void find_clusters(const ClusterArguments& arguments, ClusterWork* work, std::int64_t rows,
                   std::uint32_t* numbers) {
  EngineRun* const run = &work->run;
  const Dataset points = finish_points(&work->points);
  run->report.dims = points.dims;
  run->report.dataset_bytes = held_bytes(work->points) + number_bytes(rows);
  forget_sides(run);
  share_side(run, 0, work->points.shared, {}, nullptr);
  set_request(run, JoinRequest(Sides::one(points, PairSelection::kAll),
                               PointsWithin{arguments.metric, arguments.eps},
                               Output::clusters(arguments.min_points)));
  begin_join(run);
  start_engine(run);
  while (next_engine_batch(run)) {
    const ResultBatch& batch = run->batch;
    for (std::uint64_t i = 0; i < batch.row_count; ++i) {
      const RowCluster found = unpack_cluster(batch.counts[i]);
      const std::int64_t row = batch.left_ids[batch.rows[i]];
      if (row < 0 || row >= rows) elog(ERROR, "the engine returned other rows than it was given");
      if (found.role != ClusterRole::kNoise)
        numbers[row] = static_cast<std::uint32_t>(found.cluster);
    }
  }
}

/// The clusters of all rows of the partition.
void cluster_partition(FunctionCallInfo fcinfo, WindowObject window, PartitionClusters* clusters) {
  const ValueType& type = *value_type_of(fcinfo);
  const ClusterArguments arguments = read_cluster_arguments(window);
  clusters->found = true;
  if (arguments.null) return;
  const std::int64_t rows = WinGetPartitionRowCount(window);
  const MemoryContext partition = GetMemoryChunkContext(clusters);
  ClusterWork* const work = begin_work(partition, type, rows);
  if (number_bytes(rows) > work->points.limit || rows > PG_INT32_MAX)
    ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                    errmsg("the %lld rows of a window's partition do not fit in memory",
                           static_cast<long long>(rows)),
                    errhint("Raise gpujoin.host_memory_limit, or cluster fewer rows at a time by "
                            "PARTITION BY.")));
  resize_array(partition, &clusters->numbers, static_cast<std::uint64_t>(rows));
  std::fill_n(clusters->numbers, rows, kNoNumber);
  instr_time start, end;
  INSTR_TIME_SET_CURRENT(start);
  gather_values(window, type, rows, work);
  INSTR_TIME_SET_CURRENT(end);
  INSTR_TIME_SUBTRACT(end, start);
  work->run.report.read_ms = INSTR_TIME_GET_MILLISEC(end);
  find_clusters(arguments, work, rows, clusters->numbers);
  MemoryContextDelete(work->context);
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
  if (!clusters->found) cluster_partition(fcinfo, window, clusters);
  const std::uint32_t number =
      clusters->numbers == nullptr ? kNoNumber : clusters->numbers[WinGetCurrentPosition(window)];
  if (number == kNoNumber) PG_RETURN_NULL();
  PG_RETURN_INT64(number);
}
}
