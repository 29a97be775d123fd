// Compared values that the node computes.
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

/// Prepares an operand that the node computes; null: the input has the value.
void begin_operand(Side* side, Expr* operand, ErrorTrap trap, PlanState* parent);

/// Goes through the rows of a side.
using RowConversion = void (*)(JoinNode* node, Side* side, ValueShape* shape);

/// Calls `convert`, which may compute the side's operand, if it has one. No input is asked for rows
/// meanwhile: a subtransaction may be open.
void compute_operands(JoinNode* node, Side* side, ValueShape* shape, RowConversion convert);

/// Computes the operand over the scan tuple. False where an error was dropped, or where none could
/// be: the row is odd.
bool compute_operand(JoinNode* node, Side* side, Datum* value, bool* is_null);

}  // namespace gpujoin
