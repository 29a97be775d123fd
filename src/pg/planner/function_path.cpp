// Planning of the node over a function: when it takes the function's place, at what cost, and which
// columns it returns.
#include "pg/planner/function_path.h"

#include "pg/executor/function_node.h"
#include "pg/planner/pair_cost.h"
#include "pg/settings.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/prep.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

Datum gpujoin_support(PG_FUNCTION_ARGS);
}

namespace gpujoin {
namespace {

set_rel_pathlist_hook_type previous_hook = nullptr;

/// Whether the function has our support function. Nothing more is read of a function without it,
/// which may be any function of the query: that could load its library.
bool has_our_support(Oid function) {
  const Oid support = get_func_support(function);
  if (!OidIsValid(support)) return false;
  FmgrInfo info;
  fmgr_info(support, &info);
  return info.fn_addr == gpujoin_support;
}

/// The call, if the range table entry is one of our functions and nothing else. Functions are known
/// by their address: names prove nothing, and a function that ALTER FUNCTION ... SET wraps has
/// another one.
FuncExpr* join_call(const RangeTblEntry* entry) {
  if (entry->rtekind != RTE_FUNCTION || entry->funcordinality) return nullptr;
  if (list_length(entry->functions) != 1) return nullptr;
  const RangeTblFunction* const function = linitial_node(RangeTblFunction, entry->functions);
  if (function->funccolnames != NIL || !IsA(function->funcexpr, FuncExpr)) return nullptr;
  FuncExpr* const call = castNode(FuncExpr, function->funcexpr);
  if (!has_our_support(call->funcid)) return nullptr;
  FmgrInfo info;
  fmgr_info(call->funcid, &info);
  return find_operation(info.fn_addr) != nullptr ? call : nullptr;
}

/// Whether the row is wanted as a whole: in an expression, or to be rechecked after waiting for a
/// lock.
bool needs_whole_row(PlannerInfo* root, RelOptInfo* rel) {
  if (get_plan_rowmark(root->rowMarks, rel->relid) != nullptr) return true;
  Bitmapset* used = nullptr;
  pull_varattnos(reinterpret_cast<Node*>(rel->reltarget->exprs), rel->relid, &used);
  ListCell* cell;
  foreach (cell, rel->baserestrictinfo)
    pull_varattnos(reinterpret_cast<Node*>(lfirst_node(RestrictInfo, cell)->clause), rel->relid,
                   &used);
  return bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, used);
}

void add_column(List** columns, const Var* var) {
  ListCell* cell;
  foreach (cell, *columns)
    if (castNode(Var, lfirst_node(TargetEntry, cell)->expr)->varattno == var->varattno) return;
  append_column(columns, var);
}

/// Adds the relation's columns that `expression` uses and that are not there yet, in order of
/// appearance; or the number of rows, which all aggregates are.
void add_columns(List** columns, RelOptInfo* rel, void* expression) {
  List* const used =
      pull_var_clause(static_cast<Node*>(expression),
                      PVC_INCLUDE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_RECURSE_PLACEHOLDERS);
  ListCell* cell;
  foreach (cell, used) {
    if (IsA(lfirst(cell), Aggref)) {
      if (*columns == NIL) append_column(columns, lfirst(cell));
      continue;
    }
    const Var* const var = lfirst_node(Var, cell);
    if (static_cast<Index>(var->varno) == rel->relid) add_column(columns, var);
  }
}

/// Costs are just below those of the function scan, whose support function estimates what reading
/// costs: materialising the result has no advantage.
Path* make_path(RelOptInfo* rel, const Path* function_scan, FuncExpr* call) {
  CustomPath* const path =
      make_custom_path(*function_scan, NodeForm::kFunction, rel, list_make1(call));
  undercut(&path->path, function_scan);
  return &path->path;
}

/// set_rel_pathlist_hook: offers the node beside a scan of one of our functions.
void offer_function(PlannerInfo* root, RelOptInfo* rel, Index rti, RangeTblEntry* entry) {
  if (previous_hook != nullptr) previous_hook(root, rel, rti, entry);
  if (!customscan_enabled()) return;
  FuncExpr* const call = join_call(entry);
  if (call == nullptr || needs_whole_row(root, rel)) return;
  Path* node = nullptr;
  ListCell* cell;
  foreach (cell, rel->pathlist) {
    const Path* const path = static_cast<const Path*>(lfirst(cell));
    if (path->pathtype == T_FunctionScan) node = make_path(rel, path, call);
  }
  if (node != nullptr) add_path(rel, node);
}

}  // namespace

/// The scan tuple has the target list's columns first and in its
/// order, so that where the list holds plain columns PostgreSQL finds that there is nothing to
/// project.
Plan* plan_function(PlannerInfo*, RelOptInfo* rel, CustomPath* path, List* columns, List* clauses,
                    List*) {
  const List* const data = static_cast<List*>(path_data(path));
  const bool counts = list_length(data) > 1;
  CustomScan* const plan =
      make_custom_scan(NodeForm::kFunction, path->flags, columns, makeInteger(counts ? 1 : 0));
  plan->scan.plan.qual = extract_actual_clauses(clauses, false);
  plan->custom_exprs = list_make1(copyObjectImpl(linitial(data)));
  add_columns(&plan->custom_scan_tlist, rel, columns);
  // The planner may put another target list into the plan later; it needs no more than these.
  add_columns(&plan->custom_scan_tlist, rel, path->path.pathtarget->exprs);
  add_columns(&plan->custom_scan_tlist, rel, plan->scan.plan.qual);
  return &plan->scan.plan;
}

CustomPath* find_plain_call(const RelOptInfo* relation) {
  if (relation->baserestrictinfo != NIL) return nullptr;
  ListCell* cell;
  foreach (cell, relation->pathlist) {
    Path* const path = static_cast<Path*>(lfirst(cell));
    if (is_custom_path(path, NodeForm::kFunction)) return reinterpret_cast<CustomPath*>(path);
  }
  return nullptr;
}

CustomPath* make_counting_call(const CustomPath* call) {
  void* const function = linitial(static_cast<List*>(path_data(call)));
  return make_custom_path(call->path, NodeForm::kFunction, call->path.parent,
                          list_make2(function, makeInteger(1)));
}

void install_function_path() {
  previous_hook = set_rel_pathlist_hook;
  set_rel_pathlist_hook = offer_function;
}

}  // namespace gpujoin
