#include "pg/windows/cluster_node.h"

#include "pg/executor/custom_scan.h"
#include "pg/executor/explain.h"
#include "pg/store/context_end.h"
#include "pg/types/extension_object.h"

extern "C" {
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "rewrite/rewriteManip.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"
#include "utils/syscache.h"

Datum gpujoin_postgis_clusters(PG_FUNCTION_ARGS);
}

namespace gpujoin {
namespace {

WindowReport* reports = nullptr;  // of nodes that have not ended

struct ClusterNode {
  CustomScanState css;  // first: PostgreSQL knows no more than this
  PlanState* window;
  Oid function;           ///< gpu_postgis_clusters()
  WindowReport* reports;  ///< [count] of its calls, in the order of the plan
  int count;
};

ClusterNode* from_state(CustomScanState* state) { return reinterpret_cast<ClusterNode*>(state); }

// ---- The calls

/// Which function is looked for, and where its calls go.
struct CallSearch {
  Oid function;
  List* calls;
};

bool add_calls(Node* node, void* context) {
  if (node == nullptr) return false;
  auto* const search = static_cast<CallSearch*>(context);
  if (IsA(node, WindowFunc) && reinterpret_cast<WindowFunc*>(node)->winfnoid == search->function) {
    search->calls = list_append_unique(search->calls, node);
    return false;
  }
  return walk_expression(node, add_calls, context);
}

/// The calls in the plan of windows, one above the other.
List* find_calls(const Plan* plan, Oid function) {
  CallSearch search = {function, NIL};
  for (; plan != nullptr; plan = outerPlan(plan))
    if (IsA(plan, WindowAgg)) add_calls(reinterpret_cast<Node*>(plan->targetlist), &search);
  return search.calls;
}

/// The window function that a call stands for, or InvalidOid.
Oid original_of(const WindowFunc* call) {
  const Node* const last = static_cast<const Node*>(llast(call->args));
  return IsA(last, Const) ? DatumGetObjectId(reinterpret_cast<const Const*>(last)->constvalue)
                          : InvalidOid;
}

/// It in the words of the query: a function's call.
Node* words_of(const WindowFunc* call) {
  const Oid original = original_of(call);
  const int arguments = cluster_window(original) == ClusterWindow::kDbscan ? 3 : 2;
  List* const shown = list_truncate(list_copy(call->args), arguments);
  return reinterpret_cast<Node*>(
      makeFuncExpr(original, INT4OID, shown, InvalidOid, call->inputcollid, COERCE_EXPLICIT_CALL));
}

// ---- Life

void forget_reports(void* ended) {
  const auto* const node = static_cast<const ClusterNode*>(ended);
  for (int i = 0; i < node->count; ++i) {
    WindowReport** link = &reports;
    while (*link != &node->reports[i]) link = &(*link)->next;
    *link = node->reports[i].next;
  }
}

/// CustomExecMethods::BeginCustomScan.
void begin(CustomScanState* state, EState* estate, int flags) {
  ClusterNode* const node = from_state(state);
  const CustomScan* const plan = castNode(CustomScan, state->ss.ps.plan);
  const List* const data = static_cast<List*>(plan_data(plan));
  ListCell* cell;
  foreach (cell, static_cast<List*>(linitial(data))) check_execute_privilege(lfirst_oid(cell));
  Plan* const window = static_cast<Plan*>(linitial(plan->custom_plans));
  flags &= ~(EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
  node->window = ExecInitNode(window, estate, flags);
  state->custom_ps = list_make1(node->window);
  node->function = linitial_oid(static_cast<List*>(lsecond(data)));
  List* const calls = find_calls(window, node->function);
  const MemoryContext query = estate->es_query_cxt;
  node->reports = static_cast<WindowReport*>(MemoryContextAllocZero(
      query, sizeof(WindowReport) * static_cast<Size>(list_length(calls) + 1)));
  foreach (cell, calls) {
    WindowReport* const report = &node->reports[node->count++];
    report->call = static_cast<const Node*>(lfirst(cell));
    report->query = query;
    report->next = reports;
    reports = report;
  }
  call_at_end(query, forget_reports, node);
}

/// CustomExecMethods::ExecCustomScan. The window's rows are the node's, but for what PostgreSQL has
/// it compute of them.
TupleTableSlot* next(CustomScanState* state) {
  TupleTableSlot* const row = ExecProcNode(from_state(state)->window);
  ProjectionInfo* const projection = state->ss.ps.ps_ProjInfo;
  if (projection == nullptr) return row;
  if (TupIsNull(row)) return ExecClearTuple(projection->pi_state.resultslot);
  TupleTableSlot* const slot = ExecClearTuple(state->ss.ss_ScanTupleSlot);
  slot_getallattrs(row);
  const auto columns = static_cast<std::size_t>(slot->tts_tupleDescriptor->natts);
  std::copy_n(row->tts_values, columns, slot->tts_values);
  std::copy_n(row->tts_isnull, columns, slot->tts_isnull);
  ExecStoreVirtualTuple(slot);
  ExprContext* const expressions = state->ss.ps.ps_ExprContext;
  ResetExprContext(expressions);
  expressions->ecxt_scantuple = slot;
  return ExecProject(projection);
}

/// CustomExecMethods::ReScanCustomScan.
void rescan(CustomScanState* state) {
  PlanState* const window = from_state(state)->window;
  if (state->ss.ps.chgParam != nullptr) UpdateChangedParamSet(window, state->ss.ps.chgParam);
  ExecScanReScan(&state->ss);
  if (window->chgParam == nullptr) ExecReScan(window);
}

/// CustomExecMethods::EndCustomScan.
void end(CustomScanState* state) { ExecEndNode(from_state(state)->window); }

// ---- EXPLAIN

void explain_window_report(const WindowReport& report, ExplainState* es) {
  explain_count("Partitions", report.served + report.left, es);
  if (report.left > 0 || is_detailed(es)) explain_count("Partitions of PostGIS", report.left, es);
  if (report.reason != nullptr) ExplainPropertyText("Window Fallback", report.reason, es);
  if (report.served > 0) explain_report(report.report, es);
}

/// The plan of the window whose function it is; null: it is in none.
const PlanState* window_of(const ClusterNode* node, const WindowReport& report) {
  for (const PlanState* window = node->window; window != nullptr; window = outerPlanState(window)) {
    CallSearch search = {node->function, NIL};
    if (IsA(window, WindowAggState))
      add_calls(reinterpret_cast<Node*>(window->plan->targetlist), &search);
    if (list_member_ptr(search.calls, report.call)) return window;
  }
  return nullptr;
}

/// CustomExecMethods::ExplainCustomScan. Columns of a call are those of its window's plan.
void explain(CustomScanState* state, List* ancestors, ExplainState* es) {
  const ClusterNode* const node = from_state(state);
  List* const above = lcons(state->ss.ps.plan, list_copy(ancestors));
  const bool prefix = es->verbose || list_length(es->rtable) > 1;  // as PostgreSQL shows columns
  ExplainPropertyText("Join Method", "DBSCAN", es);
  ExplainOpenGroup("Windows", "Windows", false, es);
  for (int i = 0; i < node->count; ++i) {
    const WindowReport& report = node->reports[i];
    const PlanState* const window = window_of(node, report);
    if (window == nullptr) continue;
    ExplainOpenGroup("Window", nullptr, true, es);
    List* const context = set_deparse_context_plan(es->deparse_cxt, window->plan, above);
    Node* const words = words_of(reinterpret_cast<const WindowFunc*>(report.call));
    ExplainPropertyText("Window Function", deparse_expression(words, context, prefix, false), es);
    if (es->analyze && report.served + report.left > 0) explain_window_report(report, es);
    ExplainCloseGroup("Window", nullptr, true, es);
  }
  ExplainCloseGroup("Windows", "Windows", false, es);
}

constexpr CustomExecMethods kExecMethods = make_exec_methods(begin, next, end, rescan, explain);

/// expression_tree_mutator()'s: window functions as calls of functions.
Node* name_window_functions(Node* node, void* context) {
  if (node == nullptr) return nullptr;
  if (!IsA(node, WindowFunc)) return mutate_expression(node, name_window_functions, context);
  const auto* const call = reinterpret_cast<const WindowFunc*>(node);
  return reinterpret_cast<Node*>(
      makeFuncExpr(call->winfnoid, call->wintype, static_cast<List*>(copyObjectImpl(call->args)),
                   call->wincollid, call->inputcollid, COERCE_EXPLICIT_CALL));
}

/// Has EXPLAIN show window functions in the scan tuple as calls, for it finds no window there.
void name_clusters(CustomScan* plan) {
  ListCell* cell;
  foreach (cell, plan->custom_scan_tlist) {
    TargetEntry* const entry = lfirst_node(TargetEntry, cell);
    if (!contain_windowfuncs(reinterpret_cast<Node*>(entry->expr))) continue;
    const MemoryContext caller = MemoryContextSwitchTo(GetMemoryChunkContext(entry));
    entry->expr = reinterpret_cast<Expr*>(
        name_window_functions(reinterpret_cast<Node*>(entry->expr), nullptr));
    MemoryContextSwitchTo(caller);
  }
}

}  // namespace

ClusterWindow cluster_window(Oid function) {
  if (function < FirstNormalObjectId || get_func_prokind(function) != PROKIND_WINDOW)
    return ClusterWindow::kNone;
  const char* const name = get_func_name(function);
  const ClusterWindow window = name == nullptr                            ? ClusterWindow::kNone
                               : strcmp(name, "st_clusterdbscan") == 0    ? ClusterWindow::kDbscan
                               : strcmp(name, "st_clusterwithinwin") == 0 ? ClusterWindow::kWithin
                                                                          : ClusterWindow::kNone;
  if (window == ClusterWindow::kNone || get_func_rettype(function) != INT4OID ||
      !is_compiled_function_of(function, "postgis"))
    return ClusterWindow::kNone;
  Oid* types = nullptr;
  int count = 0;
  get_func_signature(function, &types, &count);
  const bool known = count == (window == ClusterWindow::kDbscan ? 3 : 2) &&
                     is_base_type_of(types[0], "postgis", "geometry") && types[1] == FLOAT8OID &&
                     (count == 2 || types[2] == INT4OID);
  return known ? window : ClusterWindow::kNone;
}

Oid find_postgis_clusters() {
  Oid found = InvalidOid;
  CatCList* const functions =
      SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum("gpu_postgis_clusters"));
  for (int i = 0; i < functions->n_members; ++i) {
    const HeapTuple tuple = &functions->members[i]->tuple;
    const Oid function = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple))->oid;
    if (!is_compiled_function_of(function, "gpujoin")) continue;
    FmgrInfo info;
    fmgr_info(function, &info);
    if (info.fn_addr == gpujoin_postgis_clusters) found = function;
  }
  ReleaseSysCacheList(functions);
  return found;
}

WindowReport* find_window_report(const FmgrInfo* function) {
  for (WindowReport* report = reports; report != nullptr; report = report->next)
    if (report->query == function->fn_mcxt && equal(report->call, function->fn_expr)) return report;
  return nullptr;
}

void note_served(WindowReport* report, EngineRun* run) {
  const JoinReport before = report->report;
  report->report = report_run(run);
  if (report->served++ == 0) return;
  JoinReport& all = report->report;
  all.read_ms += before.read_ms;
  add_work(before.stats, &all.stats);
}

Node* create_cluster_node(CustomScan* plan) {
  name_clusters(plan);
  ClusterNode* const node =
      reinterpret_cast<ClusterNode*>(newNode(sizeof(ClusterNode), T_CustomScanState));
  node->css.methods = &kExecMethods;
  return reinterpret_cast<Node*>(node);
}

}  // namespace gpujoin
