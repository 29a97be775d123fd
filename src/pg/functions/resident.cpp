// gpu_resident and gpu_evict(): the tables whose rows stay in the service.
#include "pg/errors.h"
#include "pg/functions/result_row.h"
#include "pg/reading/resident_table.h"
#include "pg/service/connection.h"
#include "service/protocol/shared_region.h"

extern "C" {
#include "catalog/objectaddress.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

using service::Descriptors;

/// A conversation that ends with the current memory context; null where no service is running.
Connection* begin_conversation() {
  Connection* const connection = static_cast<Connection*>(palloc(sizeof(Connection)));
  *connection = {};
  close_connection_with(connection, CurrentMemoryContext);
  Status why;
  switch (connect_service(connection, &why)) {
    case Connected::kYes:
      return connection;
    case Connected::kAbsent:
      return nullptr;
    default:
      raise_status(why);
  }
}

/// Sends a question and returns its answer, which lies in `buffer`.
template <class Answer, class Question>
const Answer* ask(Connection* connection, const Question& question, void* buffer,
                  Descriptors* descriptors) {
  const Arrival arrival = ask_service(connection, &question, sizeof question, buffer, descriptors);
  if (arrival == Arrival::kMessage)
    if (const Answer* const answer = service::message_as<Answer>(buffer)) return answer;
  if (arrival == Arrival::kMessage) close_descriptors(descriptors);
  raise_status(make_status(StatusCode::kDeviceFailure, "Run the query again.",
                           "the gpujoin service did not answer"));
}

/// What there is, in the current memory context.
struct Listing {
  service::ListedTable* tables;
  std::uint64_t count;
};

Listing list_tables() {
  Listing listing = {};
  Connection* const connection = begin_conversation();
  if (connection == nullptr) return listing;
  alignas(8) unsigned char buffer[service::kMostMessageBytes];
  Descriptors descriptors;
  service::ListTables question;
  service::start_message(&question);
  const auto* const answer = ask<service::ListedTables>(connection, question, buffer, &descriptors);
  const std::uint64_t bytes = answer->tables * sizeof(service::ListedTable);
  if (answer->tables > 0) {
    service::SharedRegion region;
    const Status status = service::map_region(descriptors.take(), bytes, false, &region);
    if (!status.ok()) raise_status(status);
    listing.tables = static_cast<service::ListedTable*>(MemoryContextAllocExtended(
        CurrentMemoryContext, bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM));
    if (listing.tables != nullptr) {
      std::memcpy(static_cast<void*>(listing.tables), region.base, bytes);
      listing.count = answer->tables;
    }
    service::close_region(&region);
  }
  close_descriptors(&descriptors);
  close_connection(connection);
  return listing;
}

Datum make_row(TupleDesc description, const service::ListedTable& table) {
  Row row = {};
  add(&row, ObjectIdGetDatum(table.key.relation));
  add(&row, named_columns(table.key));
  for (const std::uint64_t number :
       {table.rows, table.host_bytes, table.device_bytes, table.hits, table.blocks_read})
    add_count(&row, number);
  return make_tuple(description, &row);
}

void check_owner(Oid relation) {
  const char* const name = get_rel_name(relation);
  if (name == nullptr)
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                    errmsg("relation with OID %u does not exist", relation)));
  if (!is_owner_of_table(relation, GetUserId()))
    aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(get_rel_relkind(relation)), name);
}

std::uint64_t evict(Oid relation) {
  Connection* const connection = begin_conversation();
  if (connection == nullptr) return 0;
  alignas(8) unsigned char buffer[service::kMostMessageBytes];
  Descriptors descriptors;
  service::EvictTables question;
  service::start_message(&question);
  question.relation = relation;
  const std::uint64_t tables =
      ask<service::EvictedTables>(connection, question, buffer, &descriptors)->tables;
  close_descriptors(&descriptors);
  close_connection(connection);
  return tables;
}

}  // namespace
}  // namespace gpujoin

extern "C" {

PG_FUNCTION_INFO_V1(gpujoin_resident_tables);
PG_FUNCTION_INFO_V1(gpujoin_evict);

PGDLLEXPORT Datum gpujoin_resident_tables(PG_FUNCTION_ARGS) {
  using gpujoin::Listing;
  if (SRF_IS_FIRSTCALL()) {
    FuncCallContext* const first = gpujoin::start_rows(fcinfo);
    const MemoryContext caller = MemoryContextSwitchTo(first->multi_call_memory_ctx);
    Listing* const listing = static_cast<Listing*>(palloc(sizeof(Listing)));
    *listing = gpujoin::list_tables();
    first->user_fctx = listing;
    first->max_calls = listing->count;
    MemoryContextSwitchTo(caller);
  }
  FuncCallContext* const calls = SRF_PERCALL_SETUP();
  if (calls->call_cntr == calls->max_calls) SRF_RETURN_DONE(calls);
  const Listing* const listing = static_cast<Listing*>(calls->user_fctx);
  // The macro counts the call before it looks at the row.
  const Datum row = gpujoin::make_row(calls->tuple_desc, listing->tables[calls->call_cntr]);
  SRF_RETURN_NEXT(calls, row);
}

PGDLLEXPORT Datum gpujoin_evict(PG_FUNCTION_ARGS) {
  const Oid relation = PG_GETARG_OID(0);
  gpujoin::check_owner(relation);
  PG_RETURN_INT64(static_cast<std::int64_t>(gpujoin::evict(relation)));
}
}
