// What EXPLAIN prints for the node over two inputs.
#include "pg/executor/explain.h"
#include "pg/executor/join_node.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "utils/ruleutils.h"
}

namespace gpujoin {
namespace {

/// What the node is, as far as it is known: values may turn out to be boxes.
const char* method_of(const JoinNode* node) {
  if (tests_boxes(node->data.test) || (node->run != nullptr && node->form == ValueForm::kBox))
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

/// An expression over the scan tuple in the words of the query.
struct Words {
  List* context;

  char* operator()(const void* expression) const {
    return deparse_expression(static_cast<Node*>(const_cast<void*>(expression)), context, true,
                              false);
  }
};

void explain_conditions(const char* label, List* conditions, const Words& words, ExplainState* es) {
  if (conditions != NIL) ExplainPropertyText(label, words(make_ands_explicit(conditions)), es);
}

/// Which pairs are wanted.
void explain_top(const JoinNode* node, const Words& words, ExplainState* es) {
  const TopPlan& top = node->data.top;
  ExplainPropertyText(
      "Order", psprintf("%s%s", words(node->expressions.score), top.lowest_first ? "" : " DESC"),
      es);
  ExplainPropertyInteger("K", nullptr, top.k, es);
  ExplainPropertyText("Score Function", to_string(top.function), es);
}

/// What was done besides the engine's work.
void explain_work(const JoinNode* node, ExplainState* es) {
  explain_kept_rows(node->budget.spilled, es);
  if (node->odd_rows > 0) explain_count("Odd Rows", node->odd_rows, es);
  if (node->top_asked > 0 && is_detailed(es))
    explain_count("Top-k Pairs Asked", node->top_asked, es);
  if (node->top_problem != nullptr) ExplainPropertyText("Top-k Fallback", node->top_problem, es);
}

}  // namespace

void explain_join_node(CustomScanState* state, List* ancestors, ExplainState* es) {
  const JoinNode* const node = reinterpret_cast<const JoinNode*>(state);
  const PlanState* const own = &state->ss.ps;
  const JoinPlanExpressions& expressions = node->expressions;
  const Words words = {set_deparse_context_plan(es->deparse_cxt, own->plan, ancestors)};
  List* const filter = list_concat(list_concat_copy(expressions.order, expressions.early),
                                   list_copy(expressions.late));
  const bool ran = es->analyze && node->run != nullptr && own->instrument != nullptr;
  ExplainPropertyText("Join Method", method_of(node), es);
  ExplainPropertyText("Join Type", name_of(node->data.join_type), es);
  ExplainPropertyText("Join Cond", words(expressions.condition), es);
  if (ran && (node->evaluated > 0 || es->format != EXPLAIN_FORMAT_TEXT))
    explain_count("Evaluated Pairs", node->evaluated, es);
  if (ran) explain_removed("Rows Removed by Recheck", static_cast<double>(node->rejected), own, es);
  if (node->data.counts)
    ExplainPropertyText("Counts", node->data.grouped ? "pairs per row" : "pairs", es);
  if (node->data.top.k > 0) explain_top(node, words, es);
  explain_conditions("Join Filter", filter, words, es);
  if (ran && filter != NIL)
    explain_removed("Rows Removed by Join Filter", own->instrument->nfiltered2, own, es);
  explain_conditions("Filter", expressions.where, words, es);
  if (ran && expressions.where != NIL)
    explain_removed("Rows Removed by Filter", own->instrument->nfiltered1, own, es);
  if (!ran) return;
  explain_work(node, es);
  JoinReport report = report_run(node->run);
  report.stats.rechecked += node->evaluated;
  if (node->loop_reason != nullptr)
    strlcpy(report.fallback, node->loop_reason, sizeof report.fallback);
  explain_report(report, es);
}

}  // namespace gpujoin
