// EXPLAIN of a join.
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

/// An expression over the scan tuple in the words of the query.
struct Words {
  List* context;

  char* operator()(const void* expression) const;
};

void explain_conditions(const char* label, List* conditions, const Words& words, ExplainState* es);

/// CustomExecMethods::ExplainCustomScan.
void explain_join_node(CustomScanState* state, List* ancestors, ExplainState* es);

}  // namespace gpujoin
