#include "pg/executor/custom_scan.h"

extern "C" {
#include "catalog/objectaccess.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

struct FormMethods {
  decltype(CustomPathMethods::PlanCustomPath) plan;
  decltype(CustomScanMethods::CreateCustomScanState) create;
};

constexpr FormMethods kForms[] = {
    {plan_function, create_function_node},
    {plan_join, create_join_node},
    {plan_clusters, create_cluster_node},
};

/// What a path and a plan keep: their form, and data. As Nodes, which PostgreSQL copies.
List* private_list(NodeForm form, void* data) {
  return list_make2(makeInteger(static_cast<int>(form)), data);
}

int form_of(const List* data) { return intVal(linitial(data)); }

/// CustomPathMethods::PlanCustomPath.
Plan* plan_path(PlannerInfo* root, RelOptInfo* rel, CustomPath* path, List* columns, List* clauses,
                List* inputs) {
  return kForms[form_of(path->custom_private)].plan(root, rel, path, columns, clauses, inputs);
}

/// CustomScanMethods::CreateCustomScanState.
Node* create_node(CustomScan* plan) { return kForms[form_of(plan->custom_private)].create(plan); }

const CustomPathMethods kPathMethods = {kCustomScanName, plan_path, nullptr};
const CustomScanMethods kScanMethods = {kCustomScanName, create_node};

}  // namespace

void init_custom_path(CustomPath* path, NodeForm form, RelOptInfo* parent, void* data) {
  path->path.type = T_CustomPath;
  path->path.pathtype = T_CustomScan;
  path->path.parent = parent;
  path->path.parallel_safe = false;
  path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
  path->custom_private = private_list(form, data);
  path->methods = &kPathMethods;
}

CustomPath* make_custom_path(const Path& instead_of, NodeForm form, RelOptInfo* parent,
                             void* data) {
  CustomPath* const path = makeNode(CustomPath);
  path->path = instead_of;
  init_custom_path(path, form, parent, data);
  return path;
}

bool is_custom_path(const Path* path, NodeForm form) {
  if (!IsA(path, CustomPath)) return false;
  const auto* const custom = reinterpret_cast<const CustomPath*>(path);
  return custom->methods == &kPathMethods &&
         form_of(custom->custom_private) == static_cast<int>(form);
}

void* path_data(const CustomPath* path) { return lsecond(path->custom_private); }

CustomScan* make_custom_scan(NodeForm form, uint32 flags, List* columns, void* data) {
  CustomScan* const plan = makeNode(CustomScan);
  plan->scan.plan.targetlist = columns;
  plan->flags = flags;
  plan->methods = &kScanMethods;
  plan->custom_private = private_list(form, data);
  return plan;
}

void* plan_data(const CustomScan* plan) { return lsecond(plan->custom_private); }

void append_column(List** columns, const void* expression) {
  const int number = list_length(*columns) + 1;
  *columns = lappend(*columns, makeTargetEntry(static_cast<Expr*>(copyObjectImpl(expression)),
                                               static_cast<AttrNumber>(number), nullptr, false));
}

void check_execute_privilege(Oid function) {
  const AclResult result = function_aclcheck(function, GetUserId());
  const ObjectType kind =
      get_func_prokind(function) == PROKIND_AGGREGATE ? OBJECT_AGGREGATE : OBJECT_FUNCTION;
  if (result != ACLCHECK_OK) aclcheck_error(result, kind, get_func_name(function));
  InvokeFunctionExecuteHook(function);
}

void check_aggregates(const List* columns) {
  ListCell* cell;
  foreach (cell, columns) {
    const Expr* const column = lfirst_node(TargetEntry, cell)->expr;
    if (IsA(column, Aggref))
      check_execute_privilege(reinterpret_cast<const Aggref*>(column)->aggfnoid);
  }
}

void install_custom_scan() {
  RegisterCustomScanMethods(&kScanMethods);
  install_function_path();
  install_join_path();
  install_upper_path();
  install_search_path();
  install_serial_statements();
}

}  // namespace gpujoin
