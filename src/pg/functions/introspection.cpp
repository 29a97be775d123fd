// gpu_devices(), gpu_last_join() and gpu_session_joins(): what the machine has, what the last join
// did, and how all of the session went.
#include "engine/request/request.h"
#include "engine/strategy/box_strategy.h"
#include "pg/engine_loader.h"
#include "pg/executor/explain.h"
#include "pg/executor/function_scan.h"
#include "pg/functions/result_row.h"
#include "pg/service/questions.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
}

namespace gpujoin {
namespace {

/// 0 stands for NULL: there was none.
void add_small_count(Row* row, std::uint32_t number) {
  if (number == 0)
    add_null(row);
  else
    add(row, Int32GetDatum(static_cast<std::int32_t>(number)));
}

void add_number(Row* row, double number) { add(row, Float8GetDatum(number)); }

/// The devices of all engines, one after the other; an engine that cannot be used has one entry.
struct DeviceList {
  struct Entry {
    const char* engine;
    int device;  ///< -1: the engine as a whole
    DeviceInfo info;
    Status status;
    DeviceMemory memory;  ///< all 0: not known
  };
  Entry entries[kEngineCount * kMostDevices];
  std::uint64_t count;
};

/// How the memory of devices is used, as the service knows that has joined on them; else as this
/// session does.
void find_memory(const EngineTable& engine, DeviceMemory (&devices)[kMostDevices]) {
  engine.memory(devices, kMostDevices);
  service::ListDevices question;
  service::start_message(&question);
  service::ListedDevices answer;
  if (!ask_if_running(question, &answer)) return;
  for (std::uint32_t d = 0; d < kMostDevices; ++d)
    if (answer.devices[d].used > 0) devices[d] = answer.devices[d];
}

Status status_of(const DeviceInfo& device) {
  if (device.unusable[0] == '\0') return {};
  return make_status(StatusCode::kUnavailable, nullptr, "%s", device.unusable);
}

void list_devices(DeviceList* list) {
  list->count = 0;
  for (int number = 0; number < kEngineCount; ++number) {
    EngineListing listing = list_engine(number);
    DeviceInfo devices[kMostDevices];
    DeviceMemory memory[kMostDevices] = {};
    std::uint32_t count = 0;
    if (listing.engine != nullptr)
      listing.status = listing.engine->probe(devices, kMostDevices, &count);
    if (!listing.status.ok())
      list->entries[list->count++] = {listing.name, -1, {}, listing.status, {}};
    else if (listing.engine->memory != nullptr)
      find_memory(*listing.engine, memory);
    for (std::uint32_t d = 0; listing.status.ok() && d < count; ++d)
      list->entries[list->count++] = {listing.name, static_cast<int>(d), devices[d],
                                      status_of(devices[d]), memory[d]};
  }
}

void add_device(Row* row, const DeviceList::Entry& entry) {
  add(row, CStringGetTextDatum(entry.engine));
  if (entry.device >= 0) {
    add(row, Int32GetDatum(entry.device));
    add_text(row, entry.info.name);
    add(row, Int32GetDatum(static_cast<std::int32_t>(entry.info.parallelism)));
    add_count(row, entry.info.memory_bytes);
    add_text(row, entry.info.detail);
  } else {
    for (int column = 1; column <= 5; ++column) add_null(row);
  }
  add(row, BoolGetDatum(entry.status.ok()));
  add_text(row, entry.status.message);
  if (entry.memory.used > 0) {
    add_count(row, entry.memory.used);
    add_count(row, entry.memory.kept);
    add_count(row, entry.memory.joins);
  } else {
    for (int column = 1; column <= 3; ++column) add_null(row);
  }
}

Datum column_array(const std::uint32_t* columns, std::uint32_t count) {
  Datum elements[kMaxGridDimensions];
  for (std::uint32_t d = 0; d < count; ++d)
    elements[d] = Int32GetDatum(static_cast<std::int32_t>(columns[d]) + 1);
  return PointerGetDatum(
      construct_array(elements, static_cast<int>(count), INT4OID, 4, true, TYPALIGN_INT));
}

/// The index of a join of points; NULLs for boxes.
void add_index(Row* row, const Strategy& strategy) {
  add_text(row, to_string(strategy.index));
  add(row, column_array(strategy.grid_columns, strategy.grid_dims));
  if (strategy.sort_column == kNoColumn)
    add_null(row);
  else
    add(row, Int32GetDatum(strategy.sort_column + 1));
  add_text(row, to_string(strategy.access_pattern));
  add_text(row, to_string(strategy.cell_order));
}

void add_strategy(Row* row, const JoinStats& stats) {
  const Strategy& strategy = stats.strategy;
  if (stats.box_method == BoxMethod::kAuto)
    add_index(row, strategy);
  else
    for (int column = 1; column <= 5; ++column) add_null(row);
  add_number(row, strategy.estimate().candidates);
  add_number(row, strategy.estimated_pairs);
  add_text(row, strategy.reason);
}

/// NULLs where the join was not of top pairs, or not of boxes.
void add_methods(Row* row, const JoinStats& stats) {
  add_text(row, stats.topk_method == TopkMethod::kAuto ? "" : to_string(stats.topk_method));
  add_small_count(row, stats.topk_rounds);
  add_text(row, stats.box_method == BoxMethod::kAuto ? "" : to_string(stats.box_method));
}

/// How a device chose the size of its batches; NULLs where there were none.
void add_batch_model(Row* row, const JoinStats& stats) {
  if (stats.batch_pairs == 0) {
    for (int i = 0; i < 3; ++i) add_null(row);
    return;
  }
  add_count(row, stats.batch_pairs);
  add_number(row, stats.pin_ms_per_mb);
  add_number(row, stats.batch_ms);
}

/// In the order of gpu_last_join()'s columns. Columns of the vector are counted from 1, as SQL
/// does, and after them the distances to reference points.
void add_report(Row* row, const JoinReport& report) {
  const JoinStats& stats = report.stats;
  add_text(row, report.name);
  add_text(row, report.engine);
  add_text(row, report.fallback);
  add_text(row, report.metric);
  add_text(row, to_string(report.pairs));
  add_number(row, report.eps);
  add_count(row, stats.left_rows);
  add_count(row, stats.right_rows);
  add(row, Int32GetDatum(static_cast<std::int32_t>(report.dims)));
  add_strategy(row, stats);
  add_methods(row, stats);
  add(row, Int32GetDatum(static_cast<std::int32_t>(stats.threads)));
  add_text(row, stats.instruction_set);
  add_small_count(row, stats.threads_per_point);
  add_small_count(row, stats.streams);
  add_batch_model(row, stats);
  add_count(row, stats.batches);
  add_count(row, stats.candidates);
  add_count(row, stats.rechecked);
  add_count(row, stats.pairs);
  add_count(row, report.dataset_bytes + stats.memory_peak);
  add_count(row, stats.device_memory_peak);
  add_number(row, report.read_ms);
  add_number(row, stats.index_ms);
  add_number(row, stats.join_ms);
  add(row, BoolGetDatum(report.complete));
  add_text(row, report.place);
  add_text(row, report.place_reason);
  add_text(row, shares_of_devices(stats));
}

}  // namespace
}  // namespace gpujoin

extern "C" {

PG_FUNCTION_INFO_V1(gpujoin_devices);
PG_FUNCTION_INFO_V1(gpujoin_last_join);
PG_FUNCTION_INFO_V1(gpujoin_session_joins);

PGDLLEXPORT Datum gpujoin_devices(PG_FUNCTION_ARGS) {
  using gpujoin::DeviceList;
  if (SRF_IS_FIRSTCALL()) {
    FuncCallContext* const first = gpujoin::start_rows(fcinfo);
    DeviceList* const list = static_cast<DeviceList*>(
        MemoryContextAlloc(first->multi_call_memory_ctx, sizeof(DeviceList)));
    gpujoin::list_devices(list);
    first->user_fctx = list;
    first->max_calls = list->count;
  }
  FuncCallContext* const calls = SRF_PERCALL_SETUP();
  if (calls->call_cntr == calls->max_calls) SRF_RETURN_DONE(calls);
  const DeviceList* const list = static_cast<DeviceList*>(calls->user_fctx);
  gpujoin::Row row = {};
  gpujoin::add_device(&row, list->entries[calls->call_cntr]);
  SRF_RETURN_NEXT(calls, gpujoin::make_tuple(calls->tuple_desc, &row));
}

PGDLLEXPORT Datum gpujoin_last_join(PG_FUNCTION_ARGS) {
  if (SRF_IS_FIRSTCALL()) gpujoin::start_rows(fcinfo);
  FuncCallContext* const calls = SRF_PERCALL_SETUP();
  const gpujoin::JoinReport* const report = gpujoin::last_join_report();
  if (calls->call_cntr > 0 || report == nullptr) SRF_RETURN_DONE(calls);
  gpujoin::Row row = {};
  gpujoin::add_report(&row, *report);
  SRF_RETURN_NEXT(calls, gpujoin::make_tuple(calls->tuple_desc, &row));
}

PGDLLEXPORT Datum gpujoin_session_joins(PG_FUNCTION_ARGS) {
  const gpujoin::SessionCounts counts = gpujoin::session_counts();
  gpujoin::Row row = {};
  gpujoin::add_count(&row, counts.joins);
  for (const std::uint64_t fallbacks : counts.fallbacks) gpujoin::add_count(&row, fallbacks);
  PG_RETURN_DATUM(gpujoin::make_tuple(gpujoin::row_type(fcinfo), &row));
}
}
