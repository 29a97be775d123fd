#include "pg/service/prewarmer.h"

extern "C" {
#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_database.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "storage/itemptr.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

namespace gpujoin {
namespace {

/// A row of gpu_prewarmed.
struct PrewarmedRow {
  ItemPointerData ctid;
  Oid owner;  ///< of the relation, who makes the call
};

struct PrewarmedRows {
  char* call;  ///< SQL that makes the call of the row whose ctid is $1; null without the table
  PrewarmedRow* rows;
  std::uint64_t count;
};

/// Returns null, and logs it, if the server has no free worker process.
BackgroundWorkerHandle* start_worker(Oid database) {
  BackgroundWorker worker = {};
  strlcpy(worker.bgw_name, OidIsValid(database) ? "gpujoin prewarmer" : "gpujoin prewarm launcher",
          sizeof worker.bgw_name);
  strlcpy(worker.bgw_type, worker.bgw_name, sizeof worker.bgw_type);
  worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
  worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
  worker.bgw_restart_time = BGW_NEVER_RESTART;
  strlcpy(worker.bgw_library_name, "gpujoin", sizeof worker.bgw_library_name);
  strlcpy(worker.bgw_function_name, "gpujoin_prewarmer", sizeof worker.bgw_function_name);
  worker.bgw_main_arg = ObjectIdGetDatum(database);
  worker.bgw_notify_pid = MyProcPid;
  BackgroundWorkerHandle* handle = nullptr;
  if (RegisterDynamicBackgroundWorker(&worker, &handle)) return handle;
  ereport(LOG, (errmsg("tables of gpu_prewarm(keep => true) were not all prewarmed: the server has "
                       "no free worker process"),
                errhint("Raise max_worker_processes.")));
  return nullptr;
}

// ---- The databases

/// Returns those that sessions can have, but for templates.
List* find_databases() {
  List* databases = NIL;
  const MemoryContext caller = CurrentMemoryContext;
  StartTransactionCommand();
  const Relation relation = table_open(DatabaseRelationId, AccessShareLock);
  const TableScanDesc scan = table_beginscan_catalog(relation, 0, nullptr);
  while (const HeapTuple tuple = heap_getnext(scan, ForwardScanDirection)) {
    const auto* const database = reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple));
    if (!database->datallowconn || database->datistemplate) continue;
    const MemoryContext transaction = MemoryContextSwitchTo(caller);
    databases = lappend_oid(databases, database->oid);
    MemoryContextSwitchTo(transaction);
  }
  table_endscan(scan);
  table_close(relation, AccessShareLock);
  CommitTransactionCommand();
  MemoryContextSwitchTo(caller);
  return databases;
}

void prewarm_databases() {
  ListCell* cell;
  List* const databases = find_databases();
  foreach (cell, databases) {
    CHECK_FOR_INTERRUPTS();
    BackgroundWorkerHandle* const worker = start_worker(lfirst_oid(cell));
    if (worker == nullptr) return;
    if (WaitForBackgroundWorkerShutdown(worker) == BGWH_POSTMASTER_DIED) proc_exit(1);
  }
}

// ---- One database

void begin_transaction() {
  SetCurrentStatementStartTimestamp();
  StartTransactionCommand();
  if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
  PushActiveSnapshot(GetTransactionSnapshot());
}

void end_transaction() {
  SPI_finish();
  PopActiveSnapshot();
  CommitTransactionCommand();
}

/// Returns the number of rows of a query, or of those that it changed.
std::uint64_t run(const char* query) {
  if (SPI_execute(query, false, 0) < 0) elog(ERROR, "could not run \"%s\"", query);
  return SPI_processed;
}

Datum value_of(std::uint64_t row, int column) {
  bool is_null;
  return SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column, &is_null);
}

/// Forgets relations that were dropped, and returns the other rows, in `context`.
PrewarmedRows find_prewarmed(MemoryContext context) {
  PrewarmedRows found = {};
  begin_transaction();
  if (run("SELECT pg_catalog.format('%I', n.nspname) FROM pg_catalog.pg_extension e JOIN "
          "pg_catalog.pg_namespace n ON n.oid = e.extnamespace JOIN pg_catalog.pg_class c ON "
          "c.relnamespace = n.oid WHERE e.extname = 'gpujoin' AND c.relname = 'gpu_prewarmed'") ==
      1) {
    const char* const schema = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
    run(
        psprintf("DELETE FROM %s.gpu_prewarmed k WHERE NOT EXISTS (SELECT FROM "
                 "pg_catalog.pg_class c WHERE c.oid = k.relation)",
                 schema));
    found.count =
        run(psprintf("SELECT k.ctid, c.relowner FROM %s.gpu_prewarmed k JOIN "
                     "pg_catalog.pg_class c ON c.oid = k.relation ORDER BY k.ctid",
                     schema));
    const MemoryContext caller = MemoryContextSwitchTo(context);
    found.rows = static_cast<PrewarmedRow*>(palloc(found.count * sizeof(PrewarmedRow)));
    for (std::uint64_t i = 0; i < found.count; ++i)
      found.rows[i] = {*reinterpret_cast<ItemPointer>(DatumGetPointer(value_of(i, 1))),
                       DatumGetObjectId(value_of(i, 2))};
    found.call = psprintf(
        "SELECT %s.gpu_prewarm(relation, eps, id_column, vector_columns, metric, score_column, "
        "box_columns) FROM %s.gpu_prewarmed WHERE ctid OPERATOR(pg_catalog.=) $1",
        schema, schema);
    MemoryContextSwitchTo(caller);
  }
  end_transaction();
  return found;
}

/// Makes the call of a row as the table's owner.
void make_call(const char* call, PrewarmedRow* row) {
  begin_transaction();
  Oid user;
  int context;
  GetUserIdAndSecContext(&user, &context);
  SetUserIdAndSecContext(row->owner,
                         context | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
  Oid type = TIDOID;
  Datum value = PointerGetDatum(&row->ctid);
  SPI_execute_with_args(call, 1, &type, &value, nullptr, false, 0);
  SetUserIdAndSecContext(user, context);
  end_transaction();
}

/// An error in one call is logged, and the next call is made.
void make_call_or_log(const char* call, PrewarmedRow* row) {
  const MemoryContext caller = CurrentMemoryContext;
  PG_TRY();
  { make_call(call, row); }
  PG_CATCH();
  {
    HOLD_INTERRUPTS();
    EmitErrorReport();
    AbortCurrentTransaction();
    FlushErrorState();
    RESUME_INTERRUPTS();
  }
  PG_END_TRY();
  MemoryContextSwitchTo(caller);
}

void prewarm_database() {
  const PrewarmedRows found = find_prewarmed(TopMemoryContext);
  pgstat_report_activity(STATE_RUNNING, found.call);
  for (std::uint64_t i = 0; i < found.count; ++i) {
    CHECK_FOR_INTERRUPTS();
    make_call_or_log(found.call, &found.rows[i]);
  }
}

}  // namespace

BackgroundWorkerHandle* start_prewarmer() { return start_worker(InvalidOid); }

}  // namespace gpujoin

void gpujoin_prewarmer(Datum argument) {
  const Oid database = DatumGetObjectId(argument);
  pqsignal(SIGTERM, die);
  BackgroundWorkerUnblockSignals();
  BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, 0);
  if (OidIsValid(database))
    gpujoin::prewarm_database();
  else
    gpujoin::prewarm_databases();
}
