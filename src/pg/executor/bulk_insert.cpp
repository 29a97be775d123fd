// Rows are collected and given to table_multi_insert(), as COPY does. CREATE TABLE AS: PostgreSQL's
// own receiver makes the table and ends it, and one before it takes the rows. INSERT: a function in
// place of ModifyTable's takes the node's rows, where ModifyTable would only insert each.
#include "pg/executor/bulk_insert.h"

#include "pg/executor/custom_scan.h"

extern "C" {
#include "access/heapam.h"
#include "access/tableam.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "optimizer/optimizer.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

// What COPY collects before it inserts.
constexpr int kMostRows = 1000;
constexpr Size kMostBytes = 65535;

/// Rows on their way into a table. Of the query's memory, as all that it points to.
struct MultiInsert {
  Relation table;
  int options;  ///< of table_multi_insert()
  BulkInsertState state;
  MemoryContext memory;  ///< of one insertion
  CommandId command;
  TupleTableSlot* slots[kMostRows];  ///< as far as they were needed
  int rows;
  Size bytes;
};

MultiInsert* begin_inserting(Relation table, CommandId command, int options) {
  auto* const to = static_cast<MultiInsert*>(palloc0(sizeof(MultiInsert)));
  to->table = table;
  to->options = options;
  to->state = GetBulkInsertState();
  to->memory = AllocSetContextCreate(CurrentMemoryContext, "gpujoin rows for a table",
                                     ALLOCSET_DEFAULT_SIZES);
  to->command = command;
  return to;
}

void insert_rows(MultiInsert* to) {
  const MemoryContext caller = MemoryContextSwitchTo(to->memory);
  table_multi_insert(to->table, to->slots, to->rows, to->command, to->options, to->state);
  MemoryContextSwitchTo(caller);
  MemoryContextReset(to->memory);
  for (int i = 0; i < to->rows; ++i) ExecClearTuple(to->slots[i]);
  to->rows = 0;
  to->bytes = 0;
}

/// Returns the row as the table has it.
TupleTableSlot* collect(MultiInsert* to, TupleTableSlot* row) {
  TupleTableSlot*& slot = to->slots[to->rows++];
  if (slot == nullptr)
    slot = MakeSingleTupleTableSlot(RelationGetDescr(to->table), &TTSOpsHeapTuple);
  ExecCopySlot(slot, row);
  to->bytes += reinterpret_cast<const HeapTupleTableSlot*>(slot)->tuple->t_len;
  return slot;
}

void insert_if_many(MultiInsert* to) {
  if (to->rows == kMostRows || to->bytes >= kMostBytes) insert_rows(to);
}

/// Inserts the last rows. The table stays open.
void end_inserting(MultiInsert* to) {
  if (to->rows > 0) insert_rows(to);
  for (TupleTableSlot* const slot : to->slots)
    if (slot != nullptr) ExecDropSingleTupleTableSlot(slot);
  FreeBulkInsertState(to->state);
  MemoryContextDelete(to->memory);
}

bool is_heap(Relation table) { return table->rd_rel->relam == HEAP_TABLE_AM_OID; }

bool is_node(const PlanState* state) {
  if (!IsA(state, CustomScanState)) return false;
  const auto* const node = reinterpret_cast<const CustomScanState*>(state);
  return strcmp(node->methods->CustomName, kCustomScanName) == 0;
}

// ---- CREATE TABLE AS. A new table has no index, trigger or constraint, so that nothing else is
// due.

struct TableReceiver {
  DestReceiver receiver;  // first: PostgreSQL knows no more than this
  DestReceiver* own;      ///< PostgreSQL's
  MultiInsert* rows;      ///< null: they go to `own`
};

ExecutorRun_hook_type previous_run = nullptr;

/// The table that a receiver of PostgreSQL's makes.
struct NewTable {
  Oid table;                         ///< the first relation that is created; others belong to it
  object_access_hook_type previous;  ///< may be null
};

NewTable* awaited = nullptr;  // while a receiver starts

TableReceiver* from_receiver(DestReceiver* receiver) {
  return reinterpret_cast<TableReceiver*>(receiver);
}

/// object_access_hook.
void note_created(ObjectAccessType access, Oid catalog, Oid object, int column, void* argument) {
  if (awaited->previous != nullptr) awaited->previous(access, catalog, object, column, argument);
  if (access == OAT_POST_CREATE && catalog == RelationRelationId && !OidIsValid(awaited->table))
    awaited->table = object;
}

/// Starts PostgreSQL's receiver and returns the table that it makes. The hook is set no longer than
/// that: while it is, PostgreSQL 17 looks schemas of search_path up again and again.
Oid start_and_note(DestReceiver* own, int operation, TupleDesc columns) {
  NewTable made = {InvalidOid, object_access_hook};
  NewTable* const outer = awaited;
  awaited = &made;
  object_access_hook = note_created;
  PG_TRY();
  { own->rStartup(own, operation, columns); }
  PG_FINALLY();
  {
    object_access_hook = made.previous;
    awaited = outer;
  }
  PG_END_TRY();
  return made.table;
}

/// DestReceiver::rStartup.
void start(DestReceiver* self, int operation, TupleDesc columns) {
  TableReceiver* const to = from_receiver(self);
  const Oid table = start_and_note(to->own, operation, columns);
  if (!OidIsValid(table)) return;
  const Relation relation = relation_open(table, NoLock);  // the transaction has locked it
  if (is_heap(relation))
    to->rows = begin_inserting(relation, GetCurrentCommandId(true), TABLE_INSERT_SKIP_FSM);
  else
    relation_close(relation, NoLock);
}

/// DestReceiver::receiveSlot.
bool receive(TupleTableSlot* row, DestReceiver* self) {
  TableReceiver* const to = from_receiver(self);
  if (to->rows == nullptr) return to->own->receiveSlot(row, to->own);
  collect(to->rows, row);
  insert_if_many(to->rows);
  return true;
}

/// DestReceiver::rShutdown.
void end(DestReceiver* self) {
  TableReceiver* const to = from_receiver(self);
  if (to->rows != nullptr) {
    end_inserting(to->rows);
    relation_close(to->rows->table, NoLock);
  }
  to->own->rShutdown(to->own);
}

/// DestReceiver::rDestroy. The query's memory context has it.
void destroy(DestReceiver*) {}

/// Whether the rows of the node, as they are, become a table.
bool makes_table(const QueryDesc* query) {
  return query->dest->mydest == DestIntoRel && is_node(query->planstate);
}

DestReceiver* receiver_before(DestReceiver* own, MemoryContext context) {
  TableReceiver* const to =
      static_cast<TableReceiver*>(MemoryContextAllocZero(context, sizeof(TableReceiver)));
  to->receiver = {receive, start, end, destroy, own->mydest};
  to->own = own;
  return &to->receiver;
}

// ---- INSERT ... SELECT

/// Whether inserting a row is all that is due, but for NOT NULL: the table has no index, trigger or
/// policy, is no partition, and computes nothing that might look at the rows inserted before.
bool takes_rows_only(const ResultRelInfo* target) {
  const Relation relation = target->ri_RelationDesc;
  const TupleConstr* const constraints = RelationGetDescr(relation)->constr;
  return relation->rd_rel->relkind == RELKIND_RELATION && is_heap(relation) &&
         !relation->rd_rel->relispartition && !relation->rd_rel->relhasindex &&
         target->ri_TrigDesc == nullptr && target->ri_FdwRoutine == nullptr &&
         target->ri_WithCheckOptions == NIL &&
         (constraints == nullptr ||
          (constraints->num_check == 0 && !constraints->has_generated_stored));
}

/// Whether the node computes nothing that might look at the rows inserted before.
bool is_indifferent(const CustomScan* node) {
  for (const List* expressions :
       {node->scan.plan.targetlist, node->scan.plan.qual, node->custom_exprs})
    if (contain_volatile_functions(reinterpret_cast<Node*>(const_cast<List*>(expressions))))
      return false;
  return true;
}

/// Whether the query inserts the rows of the node as they are.
bool inserts_rows(const QueryDesc* query) {
  if (!IsA(query->planstate, ModifyTableState)) return false;
  auto* const state = reinterpret_cast<ModifyTableState*>(query->planstate);
  const auto* const insertion = reinterpret_cast<const ModifyTable*>(state->ps.plan);
  if (!is_node(outerPlanState(&state->ps))) return false;
  const auto* const node = reinterpret_cast<const CustomScan*>(outerPlan(insertion));
  const List* const columns = node->scan.plan.targetlist;
  return state->operation == CMD_INSERT && insertion->returningLists == NIL &&
         insertion->onConflictAction == ONCONFLICT_NONE && takes_rows_only(state->resultRelInfo) &&
         ExecCleanTargetListLength(const_cast<List*>(columns)) == list_length(columns) &&
         is_indifferent(node);
}

/// In place of ExecModifyTable(), which returns when all rows are inserted.
TupleTableSlot* insert_all(PlanState* self) {
  auto* const state = reinterpret_cast<ModifyTableState*>(self);
  EState* const estate = self->state;
  if (state->mt_done) return nullptr;
  ResultRelInfo* const target = state->resultRelInfo;
  const bool has_constraints = RelationGetDescr(target->ri_RelationDesc)->constr != nullptr;
  const MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);
  MultiInsert* const to = begin_inserting(target->ri_RelationDesc, estate->es_output_cid, 0);
  for (;;) {
    ResetPerTupleExprContext(estate);
    TupleTableSlot* const row = ExecProcNode(outerPlanState(self));
    if (TupIsNull(row)) break;
    TupleTableSlot* const taken = collect(to, row);
    if (has_constraints) ExecConstraints(target, taken, estate);
    insert_if_many(to);
    ++estate->es_processed;
  }
  end_inserting(to);
  MemoryContextSwitchTo(caller);
  state->mt_done = true;
  return nullptr;
}

/// ExecutorRun_hook. Until PostgreSQL 17 there is one more argument.
template <class... More>
void run(QueryDesc* query, ScanDirection direction, uint64 count, More... more) {
  DestReceiver* const own = query->dest;
  if (makes_table(query)) query->dest = receiver_before(own, query->estate->es_query_cxt);
  if (inserts_rows(query)) ExecSetExecProcNode(query->planstate, insert_all);
  const ExecutorRun_hook_type next = previous_run != nullptr ? previous_run : standard_ExecutorRun;
  next(query, direction, count, more...);
  query->dest = own;
}

}  // namespace

void install_bulk_insert() {
  previous_run = ExecutorRun_hook;
  ExecutorRun_hook = run;
}

}  // namespace gpujoin
