#include "pg/reading/table_search.h"

#include "pg/engine_loader.h"
#include "pg/reading/block_rows.h"
#include "pg/service/reach_service.h"
#include "pg/service/shared_rows.h"
#include "pg/settings.h"
#include "pg/store/context_end.h"
#include "pg/store/huge_array.h"
#include "pg/types/product_test.h"

extern "C" {
#include "access/table.h"
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

constexpr int kMemoryShares = 3;  // of gpujoin.host_memory_limit: points, their index, the rest

/// Starts with an empty buffer for the rows that this session reads.
void start_points(TableSearch* search, const SideColumns& columns, bool shares) {
  search->points = {};
  search->points.context = search->context;
  search->points.limit = host_memory_limit_bytes() / kMemoryShares;
  search->points.scalar = scalar_of(columns);
  search->points.shares = shares;
  search->points.spill = &search->spill;
  search->shape = {};
}

// ---- In the service

/// Returns false with the reason in *why if there is no service, or if it cannot keep the table.
/// `anew`: reads all rows, whatever the service has.
bool open_in_service(TableSearch* search, const SideColumns& columns, bool waits, Status* why,
                     bool anew = false) {
  *why = make_status(StatusCode::kUnavailable, nullptr, "%s", why_not_kept());
  if (service_preference() == ServicePreference::kOff || !IsUnderPostmaster ||
      (!take_connection(&search->connection) &&
       !reach_service(&search->connection, waits ? kConnectMs : 0, why)))
    return false;
  start_points(search, columns, true);
  search->is_waiting = true;
  if (!read_kept_side(&search->connection, 1, columns, TableReader::kNode, &search->points,
                      &search->shape, &search->kept, anew)) {
    close_connection(&search->connection);
    return search->kept.is_outgrown && open_in_service(search, columns, waits, why, true);
  }
  search->is_waiting = false;
  search->is_sent = search->kept.as_found;
  return true;
}

/// Fills the message. Appends the descriptors of rows that the service does not have yet.
Status fill_question(TableSearch* search, const JoinRequest& request, service::WantedEngine engine,
                     const Dataset& point, service::Search* question, SentSide* copies, int* files,
                     int* count) {
  service::start_message(question);
  question->engine = engine;
  std::memcpy(question->request, &request, sizeof request);
  question->dims = point.dims;
  question->scalar = point.scalar;
  question->point_bytes = static_cast<std::uint32_t>(point_bytes(point));
  question->header.bytes = static_cast<std::uint32_t>(sent_bytes(*question));
  std::memcpy(question->point, gpujoin::point(point, 0), question->point_bytes);
  if (search->is_sent) return {};
  const SharedSide side = {search->points.shared, &search->kept.table};
  return send_side(search->kept.table.rows, side, copies, &question->table, files, count);
}

Status lost() {
  return make_status(StatusCode::kDeviceFailure, "Run the query again.",
                     "the gpujoin service ended while it searched a table");
}

/// Waits for the next message of the answer.
Status receive_rows(const Connection& connection, unsigned char* buffer,
                    const service::FoundRows** answer) {
  static const std::uint32_t wait_event = new_wait_event("GpujoinServiceSearch");
  service::Descriptors none;
  Arrival arrival;
  while ((arrival = await_message(&connection, buffer, &none, -1, wait_event)) ==
         Arrival::kInterrupted)
    CHECK_FOR_INTERRUPTS();
  if (arrival != Arrival::kMessage) return lost();
  service::close_descriptors(&none);
  *answer = service::message_as<service::FoundRows>(buffer);
  if (*answer == nullptr || (*answer)->count > service::kMostFoundRows)
    return make_status(StatusCode::kInternal, nullptr, "the gpujoin service sent a wrong message");
  return (*answer)->status;
}

void add_row(MemoryContext context, const service::FoundRow& row, FoundList* found) {
  reserve_next(context, &found->rows, found->count, &found->room);
  found->rows[found->count++] = row;
}

/// Replaces the result of the search before.
void take_rows(TableSearch* search, const FoundList& found, const char* engine,
               std::uint64_t candidates) {
  if (search->found.rows != nullptr) pfree(search->found.rows);
  search->found = found;
  strlcpy(search->engine, engine, sizeof search->engine);
  search->candidates += candidates;
}

Status take_answer(TableSearch* search) {
  alignas(8) unsigned char buffer[service::kMostMessageBytes];
  FoundList found = {};
  const service::FoundRows* answer = nullptr;
  do {
    const Status status = receive_rows(search->connection, buffer, &answer);
    if (!status.ok()) return status;
    for (std::uint32_t i = 0; i < answer->count; ++i)
      add_row(search->context, answer->rows[i], &found);
  } while (answer->more);
  search->is_waiting = false;
  take_rows(search, found, answer->engine, answer->candidates);
  return {};
}

Status search_in_service(TableSearch* search, const JoinRequest& request,
                         service::WantedEngine engine, const Dataset& point) {
  service::Search question;
  SentSide copies;
  int files[service::kMostDescriptors], count = 0;
  Status status = fill_question(search, request, engine, point, &question, &copies, files, &count);
  if (status.ok()) {
    search->is_waiting = true;
    if (send_message(search->connection.socket, question, files, count) !=
        service::ChannelState::kDone)
      status = lost();
  }
  close_side(&copies);
  if (!status.ok()) return status;
  search->is_sent = true;
  return take_answer(search);
}

// ---- In this session

/// Number of searches on the session's engine that have not ended.
int local_searches = 0;

/// CollectRows. Reads the column, if that is possible by blocks.
bool collect_column(RowCollector* rows, void*) {
  const Relation relation = table_open(rows->columns->relation, NoLock);  // it is locked
  const bool can = can_read_blocks(relation, *rows->columns);
  if (can) read_blocks(relation, rows, {});
  table_close(relation, NoLock);
  return can;
}

/// Copies the values. Returns false if they cannot be had, are too many, or some value is no finite
/// point.
bool open_in_session(TableSearch* search, const SideColumns& columns, CollectRows collect,
                     void* argument) {
  static std::uint64_t last_identity = 0;
  bool has_odd = false;
  start_points(search, columns, false);
  RowCollector rows = start_collecting(&columns, &search->points);
  rows.has_odd = &has_odd;
  rows.shape.as_stored = false;
  if (!collect(&rows, argument) || has_odd || is_spilled(search->points)) return false;
  search->shape = rows.shape;
  const EngineTable* const engine = session_cpu();
  const Dataset points = finish_points(&search->points);
  if (columns.form == ValueForm::kProduct) lift_rows(points, &search->shape.lifted_norm);
  search->kept = {};
  search->kept.table.rows = points;
  search->kept.rows = points.rows;
  search->kept.dims = points.dims;
  search->local = ++last_identity;
  ++local_searches;
  engine->keep(host_memory_limit_bytes() / kMemoryShares, 0);
  return true;
}

void close_join(TableSearch* search) {
  if (search->join != nullptr) session_cpu()->close(std::exchange(search->join, nullptr));
}

void close_in_session(TableSearch* search) {
  const EngineTable* const engine = session_cpu();
  close_join(search);
  engine->forget(search->local);
  search->local = 0;
  if (--local_searches == 0) engine->keep(0, 0);
}

/// Adds the pairs of all batches. Returns kEnd, or why the join failed.
Status take_pairs(TableSearch* search, FoundList* found) {
  const EngineTable* const engine = session_cpu();
  ResultBatch batch;
  for (;;) {
    const Status status = engine->next_batch(search->join, &batch);
    CHECK_FOR_INTERRUPTS();
    if (status.code == StatusCode::kInterrupted) continue;
    if (!status.ok()) return status;
    const std::uint64_t pairs = batch.row_count > 0 ? batch.entry(batch.row_count) : 0;
    for (std::uint64_t i = 0; i < pairs; ++i)
      add_row(search->context, {batch.right_ids[batch.neighbors[i]], batch.distances[i]}, found);
  }
}

Status search_in_session(TableSearch* search, const JoinRequest& asked, const Dataset& point) {
  const EngineTable* const engine = session_cpu();
  Dataset rows = search->kept.table.rows;
  rows.key = {search->local, 1};
  JoinRequest request = asked;
  request.sides = request.sides.with_rows(point, rows);
  Status status = engine->open(&request, &search->join);
  if (!status.ok()) return status;
  FoundList found = {};
  JoinStats stats = {};
  status = take_pairs(search, &found);
  engine->stats(search->join, &stats);
  close_join(search);
  if (status.code != StatusCode::kEnd) return status;
  take_rows(search, found, engine->name, stats.candidates);
  return {};
}

/// Returns a search that ends with the current memory context.
TableSearch* make_search() {
  TableSearch* const search = static_cast<TableSearch*>(palloc0(sizeof(TableSearch)));
  search->context = CurrentMemoryContext;
  search->connection = {};
  init_spill_file(&search->spill, CurrentMemoryContext);
  call_at_end(
      CurrentMemoryContext,
      [](void* ended) { close_table_search(static_cast<TableSearch*>(ended)); }, search);
  return search;
}

}  // namespace

TableSearch* open_table_search(const SideColumns& columns) {
  TableSearch* const search = make_search();
  const bool waits = service_preference() == ServicePreference::kOn;
  Status why;
  if (open_in_service(search, columns, waits, &why) ||
      (!search->kept.is_unfit && open_in_session(search, columns, collect_column, nullptr)))
    return search;
  close_table_search(search);
  return nullptr;
}

TableSearch* open_computed_search(const SideColumns& columns, CollectRows collect, void* argument) {
  TableSearch* const search = make_search();
  if (open_in_session(search, columns, collect, argument)) return search;
  close_table_search(search);
  return nullptr;
}

TableSearch* open_kept_search(const SideColumns& columns, Status* why) {
  TableSearch* const search = make_search();
  if (open_in_service(search, columns, true, why)) return search;
  if (search->kept.is_unfit)
    *why = make_status(StatusCode::kUnavailable, nullptr,
                       "they do not fit in memory, or some have no distance from others");
  close_table_search(search);
  return nullptr;
}

Status search_table(TableSearch* search, const JoinRequest& request, service::WantedEngine engine,
                    const Dataset& point) {
  return search->local > 0 ? search_in_session(search, request, point)
                           : search_in_service(search, request, engine, point);
}

void close_table_search(TableSearch* search) {
  if (search->is_waiting)
    close_connection(&search->connection);
  else
    leave_connection(&search->connection);
  if (search->local > 0) close_in_session(search);
  close_spill_file(&search->spill);
}

}  // namespace gpujoin
