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
  switch (list_length(plan->custom_plans)) {
    case 0:
      return create_function_node();
    case 1:
      name_clusters(plan);
      return create_cluster_node();
    default:
      return create_join_node();
  }
}

}  // namespace

const CustomScanMethods kCustomScanMethods = {kCustomScanName, create_node};

void append_column(List** columns, const void* expression) {
  const int number = list_length(*columns) + 1;
  *columns = lappend(*columns, makeTargetEntry(static_cast<Expr*>(copyObjectImpl(expression)),
                                               static_cast<AttrNumber>(number), nullptr, false));
}

void check_execute_privilege(Oid function) {
  const AclResult result = function_aclcheck(function, GetUserId());
  if (result != ACLCHECK_OK) aclcheck_error(result, OBJECT_FUNCTION, get_func_name(function));
  InvokeFunctionExecuteHook(function);
}

void install_custom_scan() {
  RegisterCustomScanMethods(&kCustomScanMethods);
  install_function_path();
  install_join_path();
  install_upper_path();
}

}  // namespace gpujoin
