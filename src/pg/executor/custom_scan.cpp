#include "pg/executor/custom_scan.h"

extern "C" {
#include "nodes/makefuncs.h"
}

namespace gpujoin {
namespace {

/// CustomScanMethods::CreateCustomScanState.
Node* create_node(CustomScan* plan) {
  return plan->custom_plans == NIL ? create_function_node() : create_join_node();
}

}  // namespace

const CustomScanMethods kCustomScanMethods = {kCustomScanName, create_node};

void append_column(List** columns, const void* expression) {
  const int number = list_length(*columns) + 1;
  *columns = lappend(*columns, makeTargetEntry(static_cast<Expr*>(copyObjectImpl(expression)),
                                               static_cast<AttrNumber>(number), nullptr, false));
}

void install_custom_scan() {
  RegisterCustomScanMethods(&kCustomScanMethods);
  install_function_path();
  install_join_path();
  install_upper_path();
}

}  // namespace gpujoin
