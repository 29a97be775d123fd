// Operands that the node computes itself, and what becomes of the errors that they raise.
#include "pg/executor/join_operands.h"

#include "pg/trap.h"

extern "C" {
#include "executor/executor.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

/// Functions may leave anything in a state that has raised an error, so it is made anew. It is not
/// compiled, which would take longer than it saves.
void renew_operand(Side* side) {
  MemoryContextReset(side->operand.memory);
  const MemoryContext caller = MemoryContextSwitchTo(side->operand.memory);
  side->operand.state = ExecInitExpr(side->operand.expression, nullptr);
  MemoryContextSwitchTo(caller);
}

/// Starts the subtransaction, whose resources are for operands alone: what else the node does
/// outlives it.
void open_subtransaction(JoinNode* node) {
  const MemoryContext caller = CurrentMemoryContext;
  const ResourceOwner owner = CurrentResourceOwner;
  BeginInternalSubTransaction(nullptr);
  node->inputs.operand_resources = CurrentResourceOwner;
  MemoryContextSwitchTo(caller);
  CurrentResourceOwner = owner;
}

/// Ends it by either function, if it is open.
void close_subtransaction(JoinNode* node, void (*end)()) {
  if (node->inputs.operand_resources == nullptr) return;
  const MemoryContext caller = CurrentMemoryContext;
  const ResourceOwner owner = CurrentResourceOwner;
  CurrentResourceOwner = node->inputs.operand_resources;
  node->inputs.operand_resources = nullptr;
  end();
  MemoryContextSwitchTo(caller);
  CurrentResourceOwner = owner;
}

}  // namespace

void begin_operand(Side* side, Expr* operand, ErrorTrap trap, PlanState* parent) {
  side->operand.trap = trap;
  side->operand.expression = operand;
  if (trap != ErrorTrap::kSubtransaction) {
    side->operand.state = ExecInitExpr(operand, parent);
    return;
  }
  side->operand.memory =
      AllocSetContextCreate(CurrentMemoryContext, "gpujoin operand", ALLOCSET_SMALL_SIZES);
  renew_operand(side);
}

void compute_operands(JoinNode* node, Side* side, ValueShape* shape, RowConversion convert) {
  const bool refused = IsInParallelMode() && !kSubtransactionsInParallelMode;
  const bool opens = side->operand.trap == ErrorTrap::kSubtransaction && !refused;
  if (!opens) {
    convert(node, side, shape);
    return;
  }
  const MemoryContext caller = CurrentMemoryContext;
  const ResourceOwner owner = CurrentResourceOwner;
  open_subtransaction(node);
  PG_TRY();
  { convert(node, side, shape); }
  PG_CATCH();
  {
    MemoryContextSwitchTo(caller);
    CurrentResourceOwner = owner;
    ErrorData* const error = CopyErrorData();
    FlushErrorState();
    close_subtransaction(node, RollbackAndReleaseCurrentSubTransaction);
    ReThrowError(error);
  }
  PG_END_TRY();
  // In parallel mode no command may be counted, as the other end might do.
  close_subtransaction(node, IsInParallelMode() ? RollbackAndReleaseCurrentSubTransaction
                                                : ReleaseCurrentSubTransaction);
}

bool compute_operand(JoinNode* node, Side* side, Datum* value, bool* is_null) {
  ExprContext* const scratch = node->css.ss.ps.ps_ExprContext;
  if (side->operand.trap == ErrorTrap::kNone) {
    *value = ExecEvalExprSwitchContext(side->operand.state, scratch, is_null);
    return true;
  }
  const bool rolls_back = side->operand.trap == ErrorTrap::kSubtransaction;
  if (rolls_back && node->inputs.operand_resources == nullptr) return false;
  const ResourceOwner owner = CurrentResourceOwner;
  if (rolls_back) CurrentResourceOwner = node->inputs.operand_resources;
  bool (*const drops)(int code) =
      rolls_back ? +[](int code) { return !is_about_server(code); } : is_about_value;
  const bool computed = try_run(
      drops, [&] { *value = ExecEvalExprSwitchContext(side->operand.state, scratch, is_null); });
  CurrentResourceOwner = owner;
  if (rolls_back && !computed) {
    close_subtransaction(node, RollbackAndReleaseCurrentSubTransaction);
    open_subtransaction(node);
    renew_operand(side);
  }
  return computed;
}

}  // namespace gpujoin
