// PostgreSQL's own receiver makes the table and ends it. Between these it would be given each row;
// this one collects rows and gives them to table_multi_insert(), as COPY does. A new table has no
// index, trigger or constraint, so that nothing else is due.
#include "pg/executor/table_receiver.h"

#include "pg/executor/custom_scan.h"

extern "C" {
#include "access/heapam.h"
#include "access/tableam.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

// What COPY collects before it inserts.
constexpr int kMostRows = 1000;
constexpr Size kMostBytes = 65535;

struct TableReceiver {
  DestReceiver receiver;  // first: PostgreSQL knows no more than this
  DestReceiver* own;      ///< PostgreSQL's
  Relation table;         ///< null: rows go to `own`
  BulkInsertState state;
  MemoryContext memory;  ///< of one insertion
  CommandId command;
  TupleTableSlot* slots[kMostRows];  ///< as far as they were needed
  int rows;
  Size bytes;
};

ExecutorRun_hook_type previous_run = nullptr;
object_access_hook_type previous_access = nullptr;
bool awaits_table = false;  // the next relation that is created is the one to be filled
Oid table = InvalidOid;     // which it was

TableReceiver* from_receiver(DestReceiver* receiver) {
  return reinterpret_cast<TableReceiver*>(receiver);
}

/// object_access_hook: notes the table; what belongs to it is created later.
void note_created(ObjectAccessType access, Oid catalog, Oid object, int column, void* argument) {
  if (previous_access != nullptr) previous_access(access, catalog, object, column, argument);
  if (!awaits_table || access != OAT_POST_CREATE || catalog != RelationRelationId) return;
  table = object;
  awaits_table = false;
}

/// DestReceiver::rStartup.
void start(DestReceiver* self, int operation, TupleDesc columns) {
  TableReceiver* const to = from_receiver(self);
  table = InvalidOid;
  awaits_table = true;
  to->own->rStartup(to->own, operation, columns);
  awaits_table = false;
  if (!OidIsValid(table)) return;
  const Relation relation = relation_open(table, NoLock);  // the transaction has locked it
  if (relation->rd_rel->relam != HEAP_TABLE_AM_OID) {
    relation_close(relation, NoLock);
    return;
  }
  to->table = relation;
  to->state = GetBulkInsertState();
  to->memory = AllocSetContextCreate(CurrentMemoryContext, "gpujoin rows for a table",
                                     ALLOCSET_DEFAULT_SIZES);
  to->command = GetCurrentCommandId(true);
}

void insert_rows(TableReceiver* to) {
  const MemoryContext caller = MemoryContextSwitchTo(to->memory);
  table_multi_insert(to->table, to->slots, to->rows, to->command, TABLE_INSERT_SKIP_FSM, to->state);
  MemoryContextSwitchTo(caller);
  MemoryContextReset(to->memory);
  for (int i = 0; i < to->rows; ++i) ExecClearTuple(to->slots[i]);
  to->rows = 0;
  to->bytes = 0;
}

/// DestReceiver::receiveSlot.
bool receive(TupleTableSlot* row, DestReceiver* self) {
  TableReceiver* const to = from_receiver(self);
  if (to->table == nullptr) return to->own->receiveSlot(row, to->own);
  TupleTableSlot** const slot = &to->slots[to->rows++];
  if (*slot == nullptr)
    *slot = MakeSingleTupleTableSlot(RelationGetDescr(to->table), &TTSOpsHeapTuple);
  ExecCopySlot(*slot, row);
  to->bytes += reinterpret_cast<const HeapTupleTableSlot*>(*slot)->tuple->t_len;
  if (to->rows == kMostRows || to->bytes >= kMostBytes) insert_rows(to);
  return true;
}

/// DestReceiver::rShutdown.
void end(DestReceiver* self) {
  TableReceiver* const to = from_receiver(self);
  if (to->table != nullptr) {
    if (to->rows > 0) insert_rows(to);
    for (TupleTableSlot* const slot : to->slots)
      if (slot != nullptr) ExecDropSingleTupleTableSlot(slot);
    FreeBulkInsertState(to->state);
    relation_close(to->table, NoLock);
  }
  to->own->rShutdown(to->own);
}

/// DestReceiver::rDestroy. The query's memory context has it.
void destroy(DestReceiver*) {}

/// Whether the rows of the node, as they are, become a table.
bool makes_table(const QueryDesc* query) {
  if (query->dest->mydest != DestIntoRel || !IsA(query->planstate, CustomScanState)) return false;
  const auto* const node = reinterpret_cast<const CustomScanState*>(query->planstate);
  return strcmp(node->methods->CustomName, kCustomScanName) == 0;
}

DestReceiver* collect_for(DestReceiver* own, MemoryContext context) {
  TableReceiver* const to =
      static_cast<TableReceiver*>(MemoryContextAllocZero(context, sizeof(TableReceiver)));
  to->receiver = {receive, start, end, destroy, own->mydest};
  to->own = own;
  return &to->receiver;
}

/// ExecutorRun_hook. Until PostgreSQL 17 there is one more argument.
template <class... More>
void run(QueryDesc* query, ScanDirection direction, uint64 count, More... more) {
  DestReceiver* const own = query->dest;
  if (makes_table(query)) query->dest = collect_for(own, query->estate->es_query_cxt);
  const ExecutorRun_hook_type next = previous_run != nullptr ? previous_run : standard_ExecutorRun;
  next(query, direction, count, more...);
  query->dest = own;
}

}  // namespace

void install_table_receiver() {
  previous_run = ExecutorRun_hook;
  ExecutorRun_hook = run;
  previous_access = object_access_hook;
  object_access_hook = note_created;
}

}  // namespace gpujoin
