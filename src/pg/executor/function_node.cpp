// Execution of the node over a function. A row takes few steps, because PostgreSQL's executor
// limits the rate of rows: nothing is allocated and nothing is reset unless there are filters or
// expressions to evaluate.
#include "pg/executor/function_node.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

// A column of the result is a member of IdPair, and the member's bits are the datum.
constexpr int kColumnOffsets[] = {offsetof(IdPair, id1), offsetof(IdPair, id2),
                                  offsetof(IdPair, distance)};

FunctionNode* from_state(CustomScanState* state) { return reinterpret_cast<FunctionNode*>(state); }

/// CustomExecMethods::BeginCustomScan. Reads no table: EXPLAIN comes here too.
void begin(CustomScanState* state, EState* estate, int) {
  FunctionNode* const node = from_state(state);
  const CustomScan* const plan = castNode(CustomScan, state->ss.ps.plan);
  const FuncExpr* const call = planned_call(plan);
  check_execute_privilege(call->funcid);
  FmgrInfo info;
  fmgr_info(call->funcid, &info);
  node->operation = find_operation(info.fn_addr);
  if (node->operation == nullptr) elog(ERROR, "function %u is not a join function", call->funcid);
  node->arguments = ExecInitExprList(call->args, &state->ss.ps);
  check_aggregates(plan->custom_scan_tlist);
  node->counts = counts_rows(plan);
  if (node->counts) return;
  ListCell* cell;
  foreach (cell, plan->custom_scan_tlist) {
    const Var* const var = castNode(Var, lfirst_node(TargetEntry, cell)->expr);
    if (var->varattno < 1 || var->varattno > node->operation->columns)
      elog(ERROR, "unexpected column %d of a join function", var->varattno);
    node->columns[node->column_count++] = var->varattno - 1;
  }
  TupleTableSlot* const slot = state->ss.ss_ScanTupleSlot;
  for (int i = 0; i < node->column_count; ++i) slot->tts_isnull[i] = false;
  if (node->operation->row != RowKind::kPair)
    node->row = AllocSetContextCreate(estate->es_query_cxt, "gpujoin row", ALLOCSET_DEFAULT_SIZES);
}

/// Evaluates the arguments and starts the join with them.
void open_scan(FunctionNode* node) {
  ExprContext* const expressions = node->css.ss.ps.ps_ExprContext;
  ResetExprContext(expressions);
  const MemoryContext caller = MemoryContextSwitchTo(expressions->ecxt_per_tuple_memory);
  NullableDatum values[kMaxJoinArguments];
  int count = 0;
  ListCell* cell;
  foreach (cell, node->arguments) {
    NullableDatum* const value = &values[count++];
    value->value = ExecEvalExpr(static_cast<ExprState*>(lfirst(cell)), expressions, &value->isnull);
  }
  Assert(count == node->operation->function.at.count);
  const MemoryContext query = node->css.ss.ps.state->es_query_cxt;
  JoinScan* const previous = node->scan;
  node->scan = nullptr;  // an error below leaves it half gone
  Node* const call =
      reinterpret_cast<Node*>(planned_call(castNode(CustomScan, node->css.ss.ps.plan)));
  node->scan = previous == nullptr
                   ? open_join_scan(query, node->operation, call, values, node->counts)
                   : reopen_join_scan(previous, call, values);
  node->arguments_changed = false;
  MemoryContextSwitchTo(caller);
}

/// Emits the rows of a batch without columns, when the plan needs none.
bool next_empty_row(FunctionNode* node) {
  while (node->empty_rows == 0) {
    if (!next_join_batch(node->scan)) return false;
    node->empty_rows = node->scan->cursor.batch.pair_count;
  }
  --node->empty_rows;
  return true;
}

/// The one row of a node that counts.
bool count_rows(FunctionNode* node, TupleTableSlot* slot) {
  if (node->counted) return false;
  slot->tts_values[0] = Int64GetDatum(static_cast<std::int64_t>(count_join_rows(node->scan)));
  slot->tts_isnull[0] = false;
  node->counted = true;
  return true;
}

/// A row that the operation makes, valid until the next one.
bool next_made_row(FunctionNode* node, TupleTableSlot* slot) {
  MemoryContextReset(node->row);
  const MemoryContext caller = MemoryContextSwitchTo(node->row);
  Datum values[kMaxResultColumns];
  bool nulls[kMaxResultColumns];
  const bool found = next_join_row(node->scan, values, nulls);
  MemoryContextSwitchTo(caller);
  for (int i = 0; found && i < node->column_count; ++i) {
    slot->tts_values[i] = values[node->columns[i]];
    slot->tts_isnull[i] = nulls[node->columns[i]];
  }
  return found;
}

bool next_row(FunctionNode* node, TupleTableSlot* slot) {
  JoinScan* const scan = node->scan;
  if (node->counts) return count_rows(node, slot);
  if (node->operation->row != RowKind::kPair) return next_made_row(node, slot);
  if (node->column_count == 0) return next_empty_row(node);
  if (!next_join_pair(scan)) return false;
  for (int i = 0; i < node->column_count; ++i)
    std::memcpy(&slot->tts_values[i],
                reinterpret_cast<const char*>(&scan->pair) + kColumnOffsets[node->columns[i]],
                sizeof(Datum));
  return true;
}

/// The next row in the scan tuple slot, which is empty at the end.
TupleTableSlot* fetch(FunctionNode* node) {
  if (node->scan == nullptr || node->arguments_changed) open_scan(node);
  TupleTableSlot* const slot = node->css.ss.ss_ScanTupleSlot;
  ExecClearTuple(slot);
  return next_row(node, slot) ? ExecStoreVirtualTuple(slot) : slot;
}

/// The next row that passes the filter, projected. Not ExecScan(): while another node rechecks a
/// row that it waited for, that would take a node without a relation of its own for a remote join,
/// and this one is none.
TupleTableSlot* fetch_filtered(FunctionNode* node) {
  ScanState* const state = &node->css.ss;
  ExprContext* const expressions = state->ps.ps_ExprContext;
  ProjectionInfo* const projection = state->ps.ps_ProjInfo;
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    ResetExprContext(expressions);
    TupleTableSlot* const slot = fetch(node);
    if (TupIsNull(slot))
      return projection == nullptr ? slot : ExecClearTuple(projection->pi_state.resultslot);
    expressions->ecxt_scantuple = slot;
    if (ExecQual(state->ps.qual, expressions))
      return projection == nullptr ? slot : ExecProject(projection);
    InstrCountFiltered1(state, 1);
  }
}

/// CustomExecMethods::ExecCustomScan.
TupleTableSlot* next(CustomScanState* state) {
  FunctionNode* const node = from_state(state);
  const bool plain = state->ss.ps.qual == nullptr && state->ss.ps.ps_ProjInfo == nullptr;
  return plain ? fetch(node) : fetch_filtered(node);
}

/// CustomExecMethods::ReScanCustomScan. Tables are read again only when an argument changed.
void rescan(CustomScanState* state) {
  FunctionNode* const node = from_state(state);
  ExecScanReScan(&state->ss);
  node->empty_rows = 0;
  node->counted = false;
  if (node->scan == nullptr) return;
  if (state->ss.ps.chgParam != nullptr)
    node->arguments_changed = true;
  else if (!node->arguments_changed)
    rewind_join_scan(node->scan);
}

/// CustomExecMethods::EndCustomScan.
void end(CustomScanState* state) {
  FunctionNode* const node = from_state(state);
  if (node->scan != nullptr) close_join_scan(node->scan);
  node->scan = nullptr;
}

constexpr CustomExecMethods kExecMethods =
    make_exec_methods(begin, next, end, rescan, explain_function_node);

}  // namespace

Node* create_function_node(CustomScan*) {
  FunctionNode* const node =
      reinterpret_cast<FunctionNode*>(newNode(sizeof(FunctionNode), T_CustomScanState));
  node->css.methods = &kExecMethods;
  return reinterpret_cast<Node*>(node);
}

}  // namespace gpujoin
