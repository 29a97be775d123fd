// pg_stat_gpujoin and pg_stat_progress_gpujoin: what joins of all sessions did, and what those in
// the service are at.
#include "pg/functions/service_lists.h"
#include "pg/service/join_reports.h"
#include "pg/session_progress.h"

extern "C" {
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "datatype/timestamp.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/acl.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
}

namespace gpujoin {
namespace {

Datum time_of(std::int64_t us_since_1970) {
  constexpr std::int64_t kDays = POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE;
  return TimestampTzGetDatum(us_since_1970 - kDays * USECS_PER_DAY);
}

/// Whether the user may see what joins of a database did: how many pairs hidden rows have is not
/// for everybody.
bool may_see_counts(Oid database) {
  if (has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS)) return true;
  const HeapTuple tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(database));
  if (!HeapTupleIsValid(tuple)) return false;
  const Oid owner = reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple))->datdba;
  ReleaseSysCache(tuple);
  return has_privs_of_role(GetUserId(), owner);
}

/// In the order of gpu_join_counts()'s columns.
bool make_counts(const service::DatabaseCounts& database, Row* row) {
  if (!may_see_counts(database.database)) return false;
  const service::JoinCounts& counts = database.counts;
  add(row, ObjectIdGetDatum(database.database));
  for (const std::uint64_t number :
       {counts.joins, counts.service_joins, counts.device_joins, counts.cancels, counts.rows,
        counts.pairs, counts.candidates, counts.table_blocks, counts.blocks_read})
    add_count(row, number);
  for (const std::uint64_t fallbacks : counts.fallbacks) add_count(row, fallbacks);
  for (const double ms : {counts.read_ms, counts.index_ms, counts.join_ms})
    add(row, Float8GetDatum(ms));
  add(row, time_of(database.since_us));
  add_count(row, counts.missed_joins);
  add_count(row, counts.searches);
  return true;
}

/// Whether the user may see what a backend does, as in pg_stat_activity.
bool may_watch(int pid) {
  if (has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS)) return true;
  const PGPROC* const backend = BackendPidGetProc(pid);
  return backend != nullptr && OidIsValid(backend->roleId) &&
         has_privs_of_role(GetUserId(), backend->roleId);
}

const char* name_of(service::JoinPhase phase) {
  switch (phase) {
    case service::JoinPhase::kReading:
      return "reading";
    case service::JoinPhase::kWaiting:
      return "waiting";
    case service::JoinPhase::kIndexing:
      return "indexing";
    case service::JoinPhase::kReturning:
      return "returning";
    case service::JoinPhase::kSearching:
      return "searching";
    default:
      return "joining";
  }
}

/// Adds the joins that sessions run by themselves. What the service lists of a session stands,
/// unless the session reads, of which the service knows no rows.
void add_sessions(Listing<service::ListedJoin>* listing) {
  const int places = session_places();
  const std::uint64_t listed = listing->count;
  auto* const joins = static_cast<service::ListedJoin*>(
      palloc((listed + static_cast<std::uint64_t>(places)) * sizeof(service::ListedJoin)));
  std::copy_n(listing->items, listed, joins);
  listing->items = joins;
  for (int place = 0; place < places; ++place) {
    service::ListedJoin own;
    if (!join_of_session(place, &own)) continue;
    service::ListedJoin* const known =
        std::find_if(joins, joins + listed, [&](const auto& join) { return join.pid == own.pid; });
    if (known == joins + listed)
      joins[listing->count++] = own;
    else if (known->phase == service::JoinPhase::kReading)
      *known = own;
  }
}

/// In the order of gpu_running_joins()'s columns.
bool make_join(const service::ListedJoin& join, Row* row) {
  if (!may_watch(join.pid)) return false;
  add(row, Int32GetDatum(join.pid));
  add(row, ObjectIdGetDatum(join.database));
  add_text(row, name_of(join.phase));
  add_text(row, join.engine);
  add(row, time_of(join.since_us));
  for (const std::uint64_t number :
       {join.left_rows, join.right_rows, join.candidates, join.pairs, join.work, join.work_done})
    add_count(row, number);
  return true;
}

}  // namespace
}  // namespace gpujoin

extern "C" {

PG_FUNCTION_INFO_V1(gpujoin_join_counts);
PG_FUNCTION_INFO_V1(gpujoin_reset_join_counts);
PG_FUNCTION_INFO_V1(gpujoin_running_joins);

PGDLLEXPORT Datum gpujoin_join_counts(PG_FUNCTION_ARGS) {
  if (SRF_IS_FIRSTCALL()) gpujoin::send_reports();
  return gpujoin::list_rows<gpujoin::service::ListCounts, gpujoin::service::ListedCounts,
                            gpujoin::service::DatabaseCounts>(fcinfo, gpujoin::make_counts);
}

PGDLLEXPORT Datum gpujoin_reset_join_counts(PG_FUNCTION_ARGS) {
  gpujoin::send_reports();
  gpujoin::service::ResetCounts question;
  gpujoin::service::start_message(&question);
  gpujoin::service::ListedCounts answer;
  PG_RETURN_BOOL(gpujoin::ask_if_running(question, &answer));
}

PGDLLEXPORT Datum gpujoin_running_joins(PG_FUNCTION_ARGS) {
  return gpujoin::list_rows<gpujoin::service::ListJoins, gpujoin::service::ListedJoins,
                            gpujoin::service::ListedJoin>(fcinfo, gpujoin::make_join,
                                                          gpujoin::add_sessions);
}
}
