#include "pg/windows/cluster_work.h"

#include "core/cluster.h"
#include "pg/settings.h"
#include "pg/store/huge_array.h"

extern "C" {
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

/// Partitions of so many rows are looked at on the spot, and one after the other without a new
/// beginning.
constexpr std::int64_t kFewRows = 4096;

bool is_on_the_spot(std::int64_t rows) {
  return rows <= kFewRows && service_preference() != ServicePreference::kOn;
}

ClusterWork* make_work(const ClusterSite& site, std::int64_t rows) {
  const MemoryContext context =
      AllocSetContextCreate(site.context, "gpujoin window", ALLOCSET_DEFAULT_SIZES);
  auto* const work =
      static_cast<ClusterWork*>(MemoryContextAllocZero(context, sizeof(ClusterWork)));
  work->context = context;
  work->scratch = AllocSetContextCreate(context, "gpujoin window value", ALLOCSET_DEFAULT_SIZES);
  init_engine_run(&work->run, context, site.name);
  begin_service_join(&work->run, static_cast<double>(rows));
  return work;
}

void end_work(ClusterSite* site) {
  if (site->work == nullptr) return;
  const MemoryContext context = site->work->context;
  site->work = nullptr;
  MemoryContextDelete(context);
}

/// Takes over a batch of the engine's, whose ids are numbers of rows.
void take_clusters(const ResultBatch& batch, std::uint32_t* numbers) {
  for (std::uint64_t i = 0; i < batch.row_count; ++i) {
    const RowCluster found = unpack_cluster(batch.counts[i]);
    const std::int64_t row = batch.left_ids[batch.rows[i]];
    if (found.role != ClusterRole::kNoise) numbers[row] = static_cast<std::uint32_t>(found.cluster);
  }
}

}  // namespace

void begin_points(ClusterWork* work, ScalarType scalar) {
  forget_points(&work->points);
  work->points.context = work->context;
  work->points.source = "a window's partition";
  work->points.scalar = scalar;
  work->points.limit = dataset_share(&work->run, 1);
  work->points.shares = work->run.service.connection.socket >= 0;
  work->shape = {};
  work->shape.as_stored = true;
}

bool begin_partition(ClusterSite* site, std::int64_t rows, ScalarType scalar) {
  if (!is_on_the_spot(rows)) end_work(site);
  if (site->work == nullptr) site->work = make_work(*site, rows);
  ClusterWork* const work = site->work;
  begin_points(work, scalar);
  const auto count = static_cast<std::uint64_t>(rows);
  if (count * sizeof(std::uint32_t) > work->points.limit || rows > PG_INT32_MAX) return false;
  if (count > site->room) {
    resize_array(site->context, &site->numbers, count);
    site->room = count;
  }
  std::fill_n(site->numbers, count, kInNoCluster);
  return true;
}

void begin_clusters(ClusterSite* site, std::int64_t rows, const JoinRequest& request,
                    std::uint64_t bytes, bool plain_sql) {
  ClusterWork* const work = site->work;
  EngineRun* const run = &work->run;
  run->plain_sql = plain_sql;
  run->report.dims = request.left().dims / (request.shape() == Shape::kBoxes ? 2 : 1);
  run->report.dataset_bytes =
      held_bytes(work->points) + static_cast<std::uint64_t>(rows) * sizeof(std::uint32_t) + bytes;
  forget_sides(run);
  share_side(run, 0, work->points.shared, {}, nullptr);
  set_request(run, request);
  limit_ids(run, {rows, 0}, {rows, 0});
  begin_join(run);
}

void start_clusters_engine(ClusterSite* site, std::int64_t rows) {
  const bool spot = is_on_the_spot(rows) && engine_preference() == EnginePreference::kAuto;
  start_engine(&site->work->run, spot ? session_cpu() : nullptr);
}

bool find_clusters(ClusterSite* site, std::int64_t rows, const Dataset& points, PointMetric metric,
                   double eps, const Output& output, bool plain_sql) {
  EngineRun* const run = &site->work->run;
  const PointsWithin predicate{metric.metric, engine_radius(metric, eps)};
  begin_clusters(site, rows, {Sides::one(points, PairSelection::kAll), predicate, output}, 0,
                 plain_sql);
  name_radius(run, to_string(metric), eps);
  start_clusters_engine(site, rows);
  while (next_engine_batch(run)) take_clusters(run->batch, site->numbers);
  return !run->exhausted;
}

void end_partition(ClusterSite* site, std::int64_t rows) {
  if (!is_on_the_spot(rows)) return end_work(site);
  ClusterWork* const work = site->work;
  stop_engine(&work->run);
  forget_points(&work->points);
  close_spill_file(&work->run.spill);
  work->run.report.dataset_bytes = 0;
  MemoryContextReset(work->scratch);
}

}  // namespace gpujoin
