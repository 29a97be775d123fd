// Life of the node: which way it is to be run, its rows, its end, and what EXPLAIN says of it.
#include "pg/join_node.h"

#include "pg/explain.h"

extern "C" {
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace gpujoin {
namespace {

JoinNode* from_state(CustomScanState* state) { return reinterpret_cast<JoinNode*>(state); }

void read_again(JoinNode* node) {
  ExecReScan(node->left.plan);
  ExecReScan(node->right.plan);
}

/// Whether both sides are the same points in the same order, so that half of the work will do.
bool are_same_points(const Dataset& a, const Dataset& b) {
  if (a.rows != b.rows || a.dims != b.dims || a.scalar != b.scalar) return false;
  return std::memcmp(a.coordinates, b.coordinates, a.rows * a.dims * scalar_bytes(a.scalar)) == 0;
}

double evaluate_eps(JoinNode* node) {
  ExprContext* const expressions = node->css.ss.ps.ps_ExprContext;
  ResetExprContext(expressions);
  const Datum value = ExecEvalExprSwitchContext(node->eps, expressions, &node->null_eps);
  const double eps = node->null_eps ? 0 : DatumGetFloat8(value);
  ResetExprContext(expressions);
  return eps;
}

/// How the engine serves, when nothing but it is to be asked.
Mode engine_mode(const JoinNode* node) {
  if (node->data.top.k > 0 && node->top_problem == nullptr) return Mode::kTop;
  if (has_open_pairs(node) || node->filter != nullptr) return Mode::kPairs;
  if (node->data.counts && !node->data.grouped) return Mode::kTotal;
  const bool counts = node->data.grouped || !shows_right(node);
  return counts && node->reading == Reading::kPoints ? Mode::kCounts : Mode::kPairs;
}

Output wanted_output(const JoinNode* node) {
  if (node->mode == Mode::kCounts) return Output::kCountPerRow;
  if (node->mode == Mode::kTotal) return Output::kTotal;
  if (node->mode == Mode::kTop) return Output::kTopPairs;
  if (node->reading == Reading::kBoxes) return Output::kPairs;
  return has_open_pairs(node) ? Output::kPairsWithDistances : Output::kPairs;
}

}  // namespace

void start_pairs(JoinNode* node) {
  const Dataset &left = node->left.points, &right = node->right.points;
  JoinRequest request = default_request(node->run->report.dataset_bytes);
  if (node->data.top.k > 0) request.top = first_top(node, request.memory_limit);
  node->mode = engine_mode(node);
  if (node->null_eps || node->band.none || left.rows == 0 || right.rows == 0) return;
  request.left = left;
  request.right = right;
  const bool top = node->mode == Mode::kTop;
  request.self_join = (!top || may_halve_top(node)) && are_same_points(left, right);
  // In a self-join rows are named by position, which the right side counts its own way.
  if (request.self_join) request.left.ids = nullptr;
  request.shape = node->reading == Reading::kBoxes ? Shape::kBoxes : Shape::kPoints;
  request.metric = node->data.test.metric;
  request.eps = node->band.select;
  request.pairs = top && request.self_join ? PairSelection::kUnordered : PairSelection::kAll;
  request.output = wanted_output(node);
  node->run->request = request;
  start_engine(node->run);
}

namespace {

/// Reads the inputs in the first way that takes all their values.
void read(JoinNode* node) {
  if (!tests_boxes(node->data.test)) {
    if (read_inputs(node, Reading::kPoints)) return;
    read_again(node);
  }
  if (has_boxes(node->data.test.kind)) {
    if (read_inputs(node, Reading::kBoxes)) return;
    read_again(node);
  }
  read_inputs(node, Reading::kRows);
}

/// Reads what is not read yet and starts.
void open(JoinNode* node) {
  const double eps = evaluate_eps(node);
  if (node->mode == Mode::kUnread) read(node);
  if (node->reading != Reading::kRows) {
    node->band = eps_band(node->data.test, eps, node->run->report.dims);
    // Values are no nearer than their boxes, but may be farther apart.
    const bool decided = node->data.test.form == TestForm::kOverlap && !node->approximate;
    if (node->reading == Reading::kBoxes && !decided) node->band.accept = -1;
    if (!node->band.engine_serves && !node->null_eps) {
      read_again(node);
      read_inputs(node, Reading::kRows);
    }
  }
  node->mode = Mode::kLoop;
  if (node->reading != Reading::kRows) start_pairs(node);
  start_rows(node);
}

TupleTableSlot* project(JoinNode* node) {
  ScanState* const state = &node->css.ss;
  TupleTableSlot* const slot = state->ss_ScanTupleSlot;
  if (node->direct != nullptr) {
    ExecClearTuple(node->direct);
    std::memcpy(node->direct->tts_values, slot->tts_values, sizeof(Datum) * node->direct_columns);
    std::memcpy(node->direct->tts_isnull, slot->tts_isnull, sizeof(bool) * node->direct_columns);
    return ExecStoreVirtualTuple(node->direct);
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
  if (node->run == nullptr) open(node);
  if (node->pairs_are_rows) {
    CHECK_FOR_INTERRUPTS();
    ExecClearTuple(node->direct);
    return next_pair_row(node, node->direct) ? ExecStoreVirtualTuple(node->direct) : nullptr;
  }
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    if (!next_row(node)) return nullptr;
    if (state->ss.ps.qual == nullptr || holds(node, state->ss.ps.qual)) return project(node);
    InstrCountFiltered1(state, 1);
  }
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
  node->direct = state->ps.ps_ResultTupleSlot;
  node->direct_columns = number;
}

/// CustomExecMethods::BeginCustomScan. Reads nothing: EXPLAIN comes here too.
void begin(CustomScanState* state, EState* estate, int flags) {
  JoinNode* const node = from_state(state);
  const CustomScan* const plan = castNode(CustomScan, state->ss.ps.plan);
  node->data = decode_join_plan(plan->custom_private);
  node->expressions = decode_join_expressions(plan->custom_exprs);
  PlanState* const parent = &state->ss.ps;
  flags &= ~(EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
  node->left.plan = ExecInitNode(static_cast<Plan*>(linitial(plan->custom_plans)), estate, flags);
  node->right.plan = ExecInitNode(static_cast<Plan*>(lsecond(plan->custom_plans)), estate, flags);
  node->left.value = node->data.left_value;
  node->right.value = node->data.right_value;
  node->left.score = node->data.top.left_score;
  node->right.score = node->data.top.right_score;
  node->left.score_type = node->data.top.left_type;
  node->right.score_type = node->data.top.right_type;
  state->custom_ps = list_make2(node->left.plan, node->right.plan);
  node->filter = ExecInitQual(node->expressions.filter, parent);
  node->condition = ExecInitQual(list_make1(node->expressions.condition), parent);
  // The distance last: it may raise an error for values that another condition keeps apart.
  node->all_conditions = ExecInitQual(
      lappend(list_copy(node->expressions.filter), node->expressions.condition), parent);
  node->eps = ExecInitExpr(node->expressions.eps, parent);
  node->context =
      AllocSetContextCreate(estate->es_query_cxt, "gpujoin join", ALLOCSET_DEFAULT_SIZES);
  find_direct_columns(node);
}

/// CustomExecMethods::ReScanCustomScan. Inputs that stay the same are not read again.
void rescan(CustomScanState* state) {
  JoinNode* const node = from_state(state);
  PlanState* const own = &state->ss.ps;
  bool changed = false;
  for (PlanState* const input : {node->left.plan, node->right.plan}) {
    if (own->chgParam != nullptr) UpdateChangedParamSet(input, own->chgParam);
    changed = changed || input->chgParam != nullptr;
  }
  ExecScanReScan(&state->ss);
  if (node->run == nullptr) return;
  if (!changed) {
    stop_engine(node->run);
    open(node);
    return;
  }
  forget_inputs(node);
  read_again(node);
}

/// CustomExecMethods::EndCustomScan.
void end(CustomScanState* state) {
  JoinNode* const node = from_state(state);
  forget_inputs(node);
  MemoryContextDelete(node->context);
  ExecEndNode(node->left.plan);
  ExecEndNode(node->right.plan);
}

/// What the node is, as far as it is known: values may turn out to be boxes.
const char* method_of(const JoinNode* node) {
  if (tests_boxes(node->data.test) || (node->run != nullptr && node->reading == Reading::kBoxes))
    return "Box Join";
  return node->data.top.k > 0 ? "Top-k Join" : "Range Join";
}

const char* name_of(JoinType type) {
  switch (type) {
    case JOIN_LEFT:
      return "Left";
    case JOIN_SEMI:
      return "Semi";
    case JOIN_ANTI:
      return "Anti";
    default:
      return "Inner";
  }
}

/// Which pairs are wanted.
void explain_top(const JoinPlanData& data, ExplainState* es) {
  ExplainPropertyText("Order", psprintf("%s%s", data.order, data.top.lowest_first ? "" : " DESC"),
                      es);
  ExplainPropertyInteger("K", nullptr, data.top.k, es);
  ExplainPropertyText("Score Function", to_string(data.top.function), es);
}

/// CustomExecMethods::ExplainCustomScan.
void explain(CustomScanState* state, List*, ExplainState* es) {
  const JoinNode* const node = from_state(state);
  ExplainPropertyText("Join Method", method_of(node), es);
  ExplainPropertyText("Join Type", name_of(node->data.join_type), es);
  ExplainPropertyText("Join Cond", node->data.condition, es);
  if (node->data.counts)
    ExplainPropertyText("Counts", node->data.grouped ? "pairs per row" : "pairs", es);
  if (node->data.top.k > 0) explain_top(node->data, es);
  if (node->data.filter[0] != '\0') ExplainPropertyText("Join Filter", node->data.filter, es);
  if (!es->analyze || node->run == nullptr) return;
  const Instrumentation* const counts = state->ss.ps.instrument;
  if (counts != nullptr && node->data.filter[0] != '\0' && state->ss.ps.qual == nullptr)
    ExplainPropertyFloat("Rows Removed by Join Filter", nullptr,
                         counts->nfiltered1 / fmax(counts->nloops, 1), 0, es);
  explain_kept_rows(
      node->left.shown.rows->file != nullptr || node->right.shown.rows->file != nullptr, es);
  if (node->mode == Mode::kTop)
    ExplainPropertyInteger("Top-k Pairs Asked", nullptr,
                           static_cast<std::int64_t>(node->run->request.top.k), es);
  if (node->top_problem != nullptr) ExplainPropertyText("Top-k Fallback", node->top_problem, es);
  if (node->mode == Mode::kLoop)
    ExplainPropertyText("Engine Fallback", "the condition is asked for every pair", es);
  if (node->run->report.engine == nullptr) return;
  JoinReport report = report_run(node->run);
  report.stats.rechecked += node->rechecked;
  explain_report(report, es);
}

constexpr CustomExecMethods kExecMethods = make_exec_methods(begin, next, end, rescan, explain);

}  // namespace

Node* create_join_node() {
  JoinNode* const node = reinterpret_cast<JoinNode*>(newNode(sizeof(JoinNode), T_CustomScanState));
  node->css.methods = &kExecMethods;
  return reinterpret_cast<Node*>(node);
}

}  // namespace gpujoin
