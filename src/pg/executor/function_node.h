// The plan node over a set-returning function of gpujoin.
#pragma once

#include "pg/executor/custom_scan.h"
#include "pg/executor/operation.h"

namespace gpujoin {

/// The call that a plan node stands for. It is the only custom expression, whole, so that the
/// planner replaces parameters in its arguments and notes that the plan depends on the function.
inline FuncExpr* planned_call(const CustomScan* plan) {
  return static_cast<FuncExpr*>(linitial(plan->custom_exprs));
}

/// Whether the node returns one row, the number of the function's.
inline bool counts_rows(const CustomScan* plan) { return intVal(plan_data(plan)) != 0; }

/// The running node. PostgreSQL allocates it zeroed; the scan lives in a memory context of its own.
struct FunctionNode {
  CustomScanState css;  // first: PostgreSQL knows no more than this
  const Operation* operation;
  List* arguments;                 ///< of ExprState
  JoinScan* scan;                  ///< null until the first row is asked for
  bool arguments_changed;          ///< the scan's are out of date
  bool counts;                     ///< one row is returned, the number of the function's
  bool counted;                    ///< it was returned
  int column_count;                ///< columns of the scan tuple
  int columns[kMaxResultColumns];  ///< which of a row's each of them is, from 0
  MemoryContext row;               ///< what the operation makes of a row that is no pair
  std::uint64_t empty_rows;  ///< rows of the current batch still due, when there are no columns
};

/// CustomExecMethods::ExplainCustomScan.
void explain_function_node(CustomScanState* node, List* ancestors, ExplainState* es);

}  // namespace gpujoin
