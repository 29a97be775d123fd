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

void explain_count(const char* label, std::uint64_t count, ExplainState* es) {
  ExplainPropertyInteger(label, nullptr, static_cast<std::int64_t>(count), es);
}

/// What was done besides the engine's work.
void explain_work(const JoinNode* node, ExplainState* es) {
  explain_kept_rows(node->spilled, es);
  if (node->odd_rows > 0) explain_count("Odd Rows", node->odd_rows, es);
  if (node->top_asked > 0) explain_count("Top-k Pairs Asked", node->top_asked, es);
  if (node->top_problem != nullptr) ExplainPropertyText("Top-k Fallback", node->top_problem, es);
  if (node->looped)
    ExplainPropertyText("Engine Fallback", "the condition is asked for every pair", es);
}

}  // namespace

void explain_join_node(CustomScanState* state, List* ancestors, ExplainState* es) {
  const JoinNode* const node = reinterpret_cast<const JoinNode*>(state);
  const JoinPlanExpressions& expressions = node->expressions;
  const Words words = {set_deparse_context_plan(es->deparse_cxt, state->ss.ps.plan, ancestors)};
  List* const filter = list_concat(list_concat_copy(expressions.order, expressions.early),
                                   list_copy(expressions.late));
  ExplainPropertyText("Join Method", method_of(node), es);
  ExplainPropertyText("Join Type", name_of(node->data.join_type), es);
  ExplainPropertyText("Join Cond", words(expressions.condition), es);
  if (node->data.counts)
    ExplainPropertyText("Counts", node->data.grouped ? "pairs per row" : "pairs", es);
  if (node->data.top.k > 0) explain_top(node, words, es);
  explain_conditions("Join Filter", filter, words, es);
  explain_conditions("Filter", expressions.where, words, es);
  if (!es->analyze || node->run == nullptr) return;
  const Instrumentation* const counts = state->ss.ps.instrument;
  if (counts != nullptr && filter != NIL)
    ExplainPropertyFloat("Rows Removed by Join Filter", nullptr,
                         static_cast<double>(node->removed) / fmax(counts->nloops, 1), 0, es);
  if (counts != nullptr && expressions.where != NIL)
    ExplainPropertyFloat("Rows Removed by Filter", nullptr,
                         counts->nfiltered1 / fmax(counts->nloops, 1), 0, es);
  explain_work(node, es);
  if (node->run->report.engine == nullptr) return;
  JoinReport report = report_run(node->run);
  report.stats.rechecked += node->rechecked;
  explain_report(report, es);
}

}  // namespace gpujoin
