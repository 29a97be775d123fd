// The paths that PostgreSQL made stay: the node stands above them, at the same cost. What differs
// is the function that the windows call, gpu_postgis_clusters(), which does what the one in its
// place does, or calls it. So other functions of the windows, their frames and their order are as
// before.
#include "pg/windows/window_path.h"

#include "pg/executor/custom_scan.h"
#include "pg/windows/cluster_node.h"

extern "C" {
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
}

namespace gpujoin {
namespace {

/// gpu_postgis_clusters(), and the functions in whose place it comes.
struct Replaced {
  Oid by;
  List* functions;
};

/// Whether the call's function is one. Arguments may be evaluated twice.
bool is_replaced(const WindowFunc* call) {
  return cluster_window(call->winfnoid) != ClusterWindow::kNone && call->aggfilter == nullptr &&
         !contain_volatile_functions(reinterpret_cast<Node*>(const_cast<List*>(call->args))) &&
         !contain_subplans(reinterpret_cast<Node*>(const_cast<List*>(call->args)));
}

bool find_replaced(Node* node, void* context) {
  if (node == nullptr) return false;
  if (!IsA(node, WindowFunc)) return walk_expression(node, find_replaced, context);
  const auto* const call = reinterpret_cast<const WindowFunc*>(node);
  auto* const replaced = static_cast<Replaced*>(context);
  if (is_replaced(call))
    replaced->functions = list_append_unique_oid(replaced->functions, call->winfnoid);
  return false;
}

/// expression_tree_mutator()'s: calls of gpu_postgis_clusters().
Node* replace_calls(Node* node, void* context) {
  if (node == nullptr) return nullptr;
  if (!IsA(node, WindowFunc)) return mutate_expression(node, replace_calls, context);
  const auto* const replaced = static_cast<const Replaced*>(context);
  auto* const call = static_cast<WindowFunc*>(copyObjectImpl(node));
  if (!is_replaced(call)) return reinterpret_cast<Node*>(call);
  if (cluster_window(call->winfnoid) == ClusterWindow::kWithin)
    call->args = lappend(call->args, makeConst(INT4OID, -1, InvalidOid, sizeof(std::int32_t),
                                               Int32GetDatum(1), false, true));
  call->args = lappend(call->args, makeConst(REGPROCEDUREOID, -1, InvalidOid, sizeof(Oid),
                                             ObjectIdGetDatum(call->winfnoid), false, true));
  call->winfnoid = replaced->by;
  return reinterpret_cast<Node*>(call);
}

Path* make_path(RelOptInfo* output, Path* windows, const Replaced& replaced) {
  CustomPath* const path =
      make_custom_path(*windows, NodeForm::kClusters, output,
                       list_make2(replaced.functions, list_make1_oid(replaced.by)));
  path->custom_paths = list_make1(windows);
  return &path->path;
}

}  // namespace

/// Windows that stand one above the other, sorted in between,
/// name each other's functions by equal expressions.
Plan* plan_clusters(PlannerInfo*, RelOptInfo*, CustomPath* path, List* columns, List*,
                    List* inputs) {
  List* const data = static_cast<List*>(path_data(path));
  CustomScan* const plan = make_custom_scan(NodeForm::kClusters, path->flags, columns, data);
  plan->custom_plans = inputs;
  Replaced replaced = {linitial_oid(static_cast<List*>(lsecond(data))), NIL};
  Plan* window = static_cast<Plan*>(linitial(inputs));
  ListCell* cell;
  foreach (cell, window->targetlist)
    append_column(&plan->custom_scan_tlist, lfirst_node(TargetEntry, cell)->expr);
  for (; window != nullptr &&
         (IsA(window, WindowAgg) || IsA(window, Sort) || IsA(window, IncrementalSort));
       window = outerPlan(window))
    window->targetlist = reinterpret_cast<List*>(
        replace_calls(reinterpret_cast<Node*>(window->targetlist), &replaced));
  return &plan->scan.plan;
}

void add_window_paths(PlannerInfo* root, RelOptInfo* output) {
  if (!root->parse->hasWindowFuncs) return;
  ListCell* cell;
  foreach (cell, output->pathlist) {
    Path* const path = static_cast<Path*>(lfirst(cell));
    if (!IsA(path, WindowAggPath)) continue;
    Replaced replaced = {InvalidOid, NIL};
    find_replaced(reinterpret_cast<Node*>(path->pathtarget->exprs), &replaced);
    if (replaced.functions == NIL) return;
    replaced.by = find_postgis_clusters();
    if (!OidIsValid(replaced.by) || function_aclcheck(replaced.by, GetUserId()) != ACLCHECK_OK)
      return;
    lfirst(cell) = make_path(output, path, replaced);
  }
}

}  // namespace gpujoin
