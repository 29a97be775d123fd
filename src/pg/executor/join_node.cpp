// Life of the node: how it begins, its rows, its end.
#include "pg/executor/join_explain.h"
#include "pg/executor/join_inputs.h"
#include "pg/executor/join_kept.h"
#include "pg/executor/join_keys.h"
#include "pg/executor/join_operands.h"
#include "pg/executor/join_result.h"
#include "pg/executor/join_rows.h"
#include "pg/executor/join_sums.h"
#include "pg/executor/sum_reading.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

JoinNode* from_state(CustomScanState* state) { return reinterpret_cast<JoinNode*>(state); }

/// Starts with what was read.
void start(JoinNode* node) {
  start_rows(node);
  node->result->start(node);
}

/// Reads the rows from this source, or from one after it.
void read_rows(JoinNode* node, RowSource source) {
  constexpr bool (*kReaders[])(JoinNode*) = {read_kept_inputs, read_summed_inputs, read_inputs};
  for (auto number = static_cast<int>(source);; ++number) {
    node->inputs.source = static_cast<RowSource>(number);
    if (kReaders[number](node)) return;
  }
}

/// Reads the inputs where the join could not do without their rows. False: it could.
bool start_with_rows(JoinNode* node) {
  if (!misses_rows(node)) return false;
  if (comes_from(node, RowSource::kSummed)) keep_summed_rows(node);
  if (node->nearest != nullptr) rescan_inputs(node);  // one of them was read
  read_rows(node, RowSource::kInputs);
  start(node);
  return true;
}

/// Reads what is not read yet and starts.
void open(JoinNode* node) {
  if (node->pairs.mode == Mode::kUnread) read_rows(node, RowSource::kKept);
  begin_join(node->pairs.run);
  start(node);
  start_with_rows(node);
}

TupleTableSlot* project(JoinNode* node) {
  ScanState* const state = &node->css.ss;
  TupleTableSlot* const slot = state->ss_ScanTupleSlot;
  if (node->output.direct != nullptr) {
    ExecClearTuple(node->output.direct);
    std::memcpy(node->output.direct->tts_values, slot->tts_values,
                sizeof(Datum) * node->output.direct_columns);
    std::memcpy(node->output.direct->tts_isnull, slot->tts_isnull,
                sizeof(bool) * node->output.direct_columns);
    return ExecStoreVirtualTuple(node->output.direct);
  }
  ExecStoreVirtualTuple(ExecClearTuple(slot));
  if (state->ps.ps_ProjInfo == nullptr) return slot;
  ExprContext* const expressions = state->ps.ps_ExprContext;
  ResetExprContext(expressions);
  expressions->ecxt_scantuple = slot;
  return ExecProject(state->ps.ps_ProjInfo);
}

/// CustomExecMethods::ExecCustomScan.
TupleTableSlot* next(CustomScanState* state) {
  JoinNode* const node = from_state(state);
  if (node->inputs.finished) return nullptr;
  if (node->pairs.mode == Mode::kUnread) open(node);
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    if (node->output.pairs_are_rows) {
      ExecClearTuple(node->output.direct);
      if (next_pair_row(node, node->output.direct))
        return ExecStoreVirtualTuple(node->output.direct);
      node->output.pairs_are_rows = false;
    }
    const bool found = node->result->next(node);
    if (start_with_rows(node)) continue;
    if (!found) break;
    if (holds(node, node->conditions.where)) return project(node);
    InstrCountFiltered1(state, 1);
  }
  node->inputs.finished = true;
  if (node->inputs.may_forget) forget_rows(node);
  return nullptr;
}

// ---- Life

/// Whether the target list is a beginning of the scan tuple as it is.
void find_direct_columns(JoinNode* node) {
  ScanState* const state = &node->css.ss;
  if (state->ps.ps_ProjInfo == nullptr) return;
  int number = 0;
  ListCell* cell;
  foreach (cell, state->ps.plan->targetlist) {
    const Expr* const expression = lfirst_node(TargetEntry, cell)->expr;
    if (!IsA(expression, Var) || reinterpret_cast<const Var*>(expression)->varattno != ++number)
      return;
  }
  node->output.direct = state->ps.ps_ResultTupleSlot;
  node->output.direct_columns = number;
}

void begin_side(Side* side, AttrNumber value, Expr* operand, ErrorTrap trap, AttrNumber score,
                Oid score_type, PlanState* parent) {
  side->value = value;
  begin_operand(side, operand, trap, parent);
  side->scores.value = score;
  side->scores.type = score_type;
}

struct ParamSearch {
  const PlannedStmt* statement;
  Bitmapset* params;
};

/// Walker: adds the ids of the executor's parameters in an expression, and in its subplans.
bool add_params(Node* expression, void* context) {
  if (expression == nullptr) return false;
  ParamSearch* const search = static_cast<ParamSearch*>(context);
  if (IsA(expression, Param)) {
    const Param* const param = reinterpret_cast<const Param*>(expression);
    if (param->paramkind == PARAM_EXEC)
      search->params = bms_add_member(search->params, param->paramid);
    return false;
  }
  if (IsA(expression, SubPlan)) {
    const int number = reinterpret_cast<const SubPlan*>(expression)->plan_id;
    const Plan* const plan =
        static_cast<const Plan*>(list_nth(search->statement->subplans, number - 1));
    search->params = bms_add_members(search->params, plan->extParam);
  }
  return walk_expression(expression, add_params, context);
}

/// The ids of the executor's parameters in expressions.
Bitmapset* params_of(const JoinNode* node, std::initializer_list<void*> expressions) {
  ParamSearch search = {node->css.ss.ps.state->es_plannedstmt, nullptr};
  for (void* const expression : expressions) add_params(static_cast<Node*>(expression), &search);
  return search.params;
}

/// CustomExecMethods::BeginCustomScan. Reads nothing: EXPLAIN comes here too.
void begin(CustomScanState* state, EState* estate, int flags) {
  JoinNode* const node = from_state(state);
  const CustomScan* const plan = castNode(CustomScan, state->ss.ps.plan);
  node->data = decode_join_plan(static_cast<const Const*>(plan_data(plan)));
  node->expressions = decode_join_expressions(plan->custom_exprs);
  // Rows are read again only where the executor announces it, or where parameters may change.
  node->inputs.may_forget =
      (flags & EXEC_FLAG_REWIND) == 0 && bms_is_empty(plan->scan.plan.allParam);
  PlanState* const parent = &state->ss.ps;
  flags &= ~(EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
  node->left.plan = ExecInitNode(static_cast<Plan*>(linitial(plan->custom_plans)), estate, flags);
  node->right.plan = ExecInitNode(static_cast<Plan*>(lsecond(plan->custom_plans)), estate, flags);
  const JoinPlanExpressions& expressions = node->expressions;
  const TopPlan& top = node->data.top;
  begin_side(&node->left, node->data.left.value, expressions.left_operand, node->data.left.trap,
             top.left_score, top.left_type, parent);
  begin_side(&node->right, node->data.right.value, expressions.right_operand, node->data.right.trap,
             top.right_score, top.right_type, parent);
  node->left.radii.value = node->data.left.radius;
  node->right.radii.value = node->data.right.radius;
  node->left.operand.guard = ExecInitQual(expressions.guard, parent);
  state->custom_ps = list_make2(node->left.plan, node->right.plan);
  node->conditions.where = ExecInitQual(expressions.where, parent);
  node->conditions.order = ExecInitQual(expressions.order, parent);
  node->conditions.early = ExecInitQual(expressions.early, parent);
  node->conditions.distance = expressions.condition == nullptr
                                  ? nullptr
                                  : ExecInitQual(list_make1(expressions.condition), parent);
  node->conditions.late = ExecInitQual(expressions.late, parent);
  node->conditions.eps = ExecInitExpr(expressions.eps, parent);
  node->context =
      AllocSetContextCreate(estate->es_query_cxt, "gpujoin join", ALLOCSET_DEFAULT_SIZES);
  find_direct_columns(node);
  node->inputs.read_params =
      params_of(node, {expressions.guard, expressions.left_operand, expressions.right_operand});
  node->inputs.early_params = params_of(node, {expressions.order, expressions.early});
  check_aggregates(plan->custom_scan_tlist);
  for (int i = 0; i < node->data.groups.columns; ++i)
    check_execute_privilege(get_opcode(node->data.groups.operators[i]));
  node->result = wanted_result(node->data);
  node->result->begin(node);
  if (node->data.key_count > 0) begin_keys(node);
}

/// CustomExecMethods::ReScanCustomScan. Reads the inputs again only if a parameter of theirs has
/// changed, or one that values are computed from.
void rescan(CustomScanState* state) {
  JoinNode* const node = from_state(state);
  PlanState* const own = &state->ss.ps;
  bool changed = bms_overlap(own->chgParam, node->inputs.read_params);
  for (PlanState* const input : {node->left.plan, node->right.plan}) {
    if (own->chgParam != nullptr) UpdateChangedParamSet(input, own->chgParam);
    changed = changed || input->chgParam != nullptr;
  }
  if (bms_overlap(own->chgParam, node->inputs.early_params))
    node->inputs.eps_need = EpsNeed::kUnknown;
  ExecScanReScan(&state->ss);
  if (node->pairs.run == nullptr) return;
  node->inputs.finished = false;
  if (!changed && node->pairs.mode != Mode::kUnread && !lacks_rows(node)) {
    open(node);
    return;
  }
  forget_rows(node);
  rescan_inputs(node);
}

/// CustomExecMethods::EndCustomScan.
void end(CustomScanState* state) {
  JoinNode* const node = from_state(state);
  forget_rows(node);
  MemoryContextDelete(node->context);
  ExecEndNode(node->left.plan);
  ExecEndNode(node->right.plan);
}

constexpr CustomExecMethods kExecMethods =
    make_exec_methods(begin, next, end, rescan, explain_join_node);

}  // namespace

Node* create_join_node(CustomScan*) {
  JoinNode* const node = reinterpret_cast<JoinNode*>(newNode(sizeof(JoinNode), T_CustomScanState));
  node->css.methods = &kExecMethods;
  return reinterpret_cast<Node*>(node);
}

}  // namespace gpujoin
