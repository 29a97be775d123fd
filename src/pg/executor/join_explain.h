// EXPLAIN of a join.
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

/// CustomExecMethods::ExplainCustomScan.
void explain_join_node(CustomScanState* state, List* ancestors, ExplainState* es);

}  // namespace gpujoin
