#include "pg/custom_scan.h"

namespace gpujoin {
namespace {

/// CustomScanMethods::CreateCustomScanState.
Node* create_node(CustomScan* plan) {
  return plan->custom_plans == NIL ? create_function_node() : create_join_node();
}

}  // namespace

const CustomScanMethods kCustomScanMethods = {kCustomScanName, create_node};

void install_custom_scan() {
  RegisterCustomScanMethods(&kCustomScanMethods);
  install_function_path();
  install_join_path();
  install_upper_path();
}

}  // namespace gpujoin
