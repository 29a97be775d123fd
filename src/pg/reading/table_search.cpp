#include "pg/reading/table_search.h"

#include "pg/service/reach_service.h"
#include "pg/service/shared_rows.h"
#include "pg/settings.h"
#include "pg/store/context_end.h"
#include "pg/store/huge_array.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

/// Reads what the service does not have, in a conversation that was left, or in a new one.
bool find_rows(TableSearch* search, const SideColumns& columns) {
  return read_kept_side(&search->connection, 1, columns, TableReader::kNode, &search->points,
                        &search->shape, &search->kept);
}

/// What a search asks for.
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
  if (search->told) return {};
  const SharedSide side = {search->points.shared, &search->kept.table};
  return send_side(search->kept.table.rows, side, copies, &question->table, files, count);
}

Status lost() {
  return make_status(StatusCode::kDeviceFailure, "Run the query again.",
                     "the gpujoin service ended while it searched a table");
}

/// Waits for the next part of the answer.
Status hear(TableSearch* search, unsigned char* buffer, const service::FoundRows** answer) {
  static const std::uint32_t wait_event = new_wait_event("GpujoinServiceSearch");
  service::Descriptors none;
  for (;;) {
    const Arrival arrival = await_message(&search->connection, buffer, &none, -1, wait_event);
    if (arrival == Arrival::kInterrupted) {
      CHECK_FOR_INTERRUPTS();
      continue;
    }
    if (arrival != Arrival::kMessage) return lost();
    break;
  }
  service::close_descriptors(&none);
  *answer = service::message_as<service::FoundRows>(buffer);
  if (*answer == nullptr || (*answer)->count > service::kMostFoundRows)
    return make_status(StatusCode::kInternal, nullptr, "the gpujoin service sent a wrong message");
  return (*answer)->status;
}

/// Takes the answer over, in the place of the one before.
Status take_answer(TableSearch* search) {
  alignas(8) unsigned char buffer[service::kMostMessageBytes];
  service::FoundRow* rows = nullptr;
  std::uint64_t count = 0, room = 0;
  const service::FoundRows* answer = nullptr;
  do {
    const Status status = hear(search, buffer, &answer);
    if (!status.ok()) return status;
    for (std::uint32_t i = 0; i < answer->count; ++i) {
      reserve_next(search->found_context, &rows, count, &room);
      rows[count++] = answer->rows[i];
    }
  } while (answer->more);
  search->waits = false;
  if (search->rows != nullptr) pfree(search->rows);
  search->rows = rows;
  search->count = count;
  std::memcpy(search->engine, answer->engine, sizeof search->engine);
  search->candidates += answer->candidates;
  return {};
}

}  // namespace

TableSearch* open_table_search(const SideColumns& columns) {
  TableSearch* const search = static_cast<TableSearch*>(palloc0(sizeof(TableSearch)));
  search->connection = {};
  search->found_context = CurrentMemoryContext;
  call_at_end(
      CurrentMemoryContext,
      [](void* ended) { close_table_search(static_cast<TableSearch*>(ended)); }, search);
  search->points.context = CurrentMemoryContext;
  search->points.limit = host_memory_limit_bytes() / 3;
  search->points.scalar = scalar_of(columns);
  search->points.shares = true;
  init_spill_file(&search->spill, CurrentMemoryContext);
  search->points.spill = &search->spill;
  const long patience = service_preference() == ServicePreference::kOn ? kConnectMs : 0;
  Status why;
  if (service_preference() == ServicePreference::kOff || !IsUnderPostmaster ||
      (!take_connection(&search->connection) &&
       !reach_service(&search->connection, patience, &why)))
    return nullptr;
  search->waits = true;
  if (find_rows(search, columns)) {
    search->waits = false;
    search->told = search->kept.as_found;
    return search;
  }
  close_table_search(search);
  return nullptr;
}

Status search_table(TableSearch* search, const JoinRequest& request, service::WantedEngine engine,
                    const Dataset& point) {
  service::Search question;
  SentSide copies;
  int files[service::kMostDescriptors], count = 0;
  Status status = fill_question(search, request, engine, point, &question, &copies, files, &count);
  if (status.ok() && search->connection.socket < 0) status = lost();
  if (status.ok()) {
    search->waits = true;
    if (send_message(search->connection.socket, question, files, count) !=
        service::ChannelState::kDone)
      status = lost();
  }
  close_side(&copies);
  if (!status.ok()) return status;
  search->told = true;
  return take_answer(search);
}

void close_table_search(TableSearch* search) {
  if (search->waits)
    close_connection(&search->connection);
  else
    leave_connection(&search->connection);
  close_spill_file(&search->spill);
}

}  // namespace gpujoin
