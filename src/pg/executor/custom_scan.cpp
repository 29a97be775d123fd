#include "pg/executor/custom_scan.h"

extern "C" {
#include "catalog/objectaccess.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

/// CustomScanMethods::CreateCustomScanState.
Node* create_node(CustomScan* plan) {
  switch (static_cast<NodeForm>(intVal(linitial(plan->custom_private)))) {
    case NodeForm::kFunction:
      return create_function_node();
    case NodeForm::kClusters:
      name_clusters(plan);
      return create_cluster_node();
    default:
      return create_join_node();
  }
}

const CustomScanMethods kMethods = {kCustomScanName, create_node};

}  // namespace

CustomPath* make_custom_path(const Path& instead_of, RelOptInfo* parent,
                             const CustomPathMethods* methods, List* data) {
  CustomPath* const path = makeNode(CustomPath);
  path->path = instead_of;
  path->path.type = T_CustomPath;
  path->path.pathtype = T_CustomScan;
  path->path.parent = parent;
  path->path.parallel_safe = false;
  path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
  path->custom_private = data;
  path->methods = methods;
  return path;
}

CustomScan* make_custom_scan(NodeForm form, uint32 flags, List* columns, void* data) {
  CustomScan* const plan = makeNode(CustomScan);
  plan->scan.plan.targetlist = columns;
  plan->flags = flags;
  plan->methods = &kMethods;
  plan->custom_private = list_make2(makeInteger(static_cast<int>(form)), data);
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
  RegisterCustomScanMethods(&kMethods);
  install_function_path();
  install_join_path();
  install_upper_path();
  install_serial_statements();
}

}  // namespace gpujoin
