// What EXPLAIN prints for the node over two inputs.
#include "pg/executor/join_explain.h"

#include "pg/executor/explain.h"
#include "pg/executor/join_inputs.h"
#include "pg/executor/join_keys.h"
#include "pg/executor/join_result.h"
#include "pg/executor/join_top.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/ruleutils.h"
}

namespace gpujoin {
namespace {

/// What the node is, as far as it is known: values may turn out to be boxes.
const char* method_of(const JoinNode* node) {
  if (tests_boxes(node->data.test) ||
      (node->pairs.run != nullptr && node->inputs.form == ValueForm::kBox))
    return "Box Join";
  return node->result->method;
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

/// A column of a plan as its table has it, or its first partition; null: it is not known.
Node* column_of(const Plan* plan, AttrNumber attribute) {
  const TargetEntry* const entry = list_nth_node(TargetEntry, plan->targetlist, attribute - 1);
  Node* const value = reinterpret_cast<Node*>(entry->expr);
  if (!IsA(value, Var)) return value;
  const Var* const column = reinterpret_cast<const Var*>(value);
  if (column->varno == OUTER_VAR) {
    const Plan* input = outerPlan(plan);
    if (IsA(plan, Append))
      input =
          static_cast<const Plan*>(linitial(reinterpret_cast<const Append*>(plan)->appendplans));
    return input != nullptr ? column_of(input, column->varattno) : nullptr;
  }
  if (column->varno != INDEX_VAR) return value;
  if (!IsA(plan, IndexOnlyScan)) return nullptr;
  const List* const columns = reinterpret_cast<const IndexOnlyScan*>(plan)->indextlist;
  return reinterpret_cast<Node*>(list_nth_node(TargetEntry, columns, column->varattno - 1)->expr);
}

/// The plan with names for the columns of a LATERAL subquery's table, which the subquery may not
/// have.
const Plan* with_names(const JoinNode* node) {
  const CustomScan* const plan = castNode(CustomScan, node->css.ss.ps.plan);
  if (node->nearest == nullptr) return &plan->scan.plan;
  CustomScan* const named = makeNode(CustomScan);
  *named = *plan;
  named->custom_scan_tlist = NIL;
  ListCell* cell;
  foreach (cell, plan->custom_scan_tlist) {
    TargetEntry* entry = lfirst_node(TargetEntry, cell);
    const int i = foreach_current_index(cell);
    if (!node->data.columns.from_left[i] && node->data.columns.attributes[i] > 0) {
      Node* const column = column_of(node->right.plan->plan, node->data.columns.attributes[i]);
      entry = flatCopyTargetEntry(entry);
      entry->expr = column != nullptr
                        ? reinterpret_cast<Expr*>(column)
                        : reinterpret_cast<Expr*>(makeNullConst(
                              exprType(reinterpret_cast<Node*>(entry->expr)), -1, InvalidOid));
    }
    named->custom_scan_tlist = lappend(named->custom_scan_tlist, entry);
  }
  return &named->scan.plan;
}

/// Why the planner had the pairs made and not added up; null: it had them added up, or nobody
/// asked.
const char* name_of(SumsRefusal refusal) {
  switch (refusal) {
    case SumsRefusal::kGroupingSets:
      return "there are grouping sets";
    case SumsRefusal::kConditions:
      return "other conditions decide about pairs";
    case SumsRefusal::kGroups:
      return "the groups are not of one side's rows";
    case SumsRefusal::kAggregates:
      return "an aggregate cannot be added up";
    default:
      return nullptr;
  }
}

/// What was done besides the engine's work.
void explain_work(const JoinNode* node, ExplainState* es) {
  explain_kept_rows(node->inputs.budget.spilled            ? KeptRows::kDisk
                    : comes_from(node, RowSource::kSummed) ? KeptRows::kNone
                                                           : KeptRows::kMemory,
                    es);
  if (fetched_rows(node) > 0) explain_count("Rows Fetched", fetched_rows(node), es);
  if (node->report.odd_rows > 0) explain_count("Odd Rows", node->report.odd_rows, es);
  if (node->top == nullptr) return;
  if (node->top->asked > 0 && is_detailed(es))
    explain_count("Top-k Pairs Asked", node->top->asked, es);
  if (node->top->problem != nullptr) ExplainPropertyText("Top-k Fallback", node->top->problem, es);
}

}  // namespace

char* Words::operator()(const void* expression) const {
  return deparse_expression(static_cast<Node*>(const_cast<void*>(expression)), context, true,
                            false);
}

void explain_conditions(const char* label, List* conditions, const Words& words, ExplainState* es) {
  if (conditions != NIL) ExplainPropertyText(label, words(make_ands_explicit(conditions)), es);
}

void explain_join_node(CustomScanState* state, List* ancestors, ExplainState* es) {
  const JoinNode* const node = reinterpret_cast<const JoinNode*>(state);
  const PlanState* const own = &state->ss.ps;
  const JoinPlanExpressions& expressions = node->expressions;
  Plan* const named = const_cast<Plan*>(with_names(node));
  const Words words = {set_deparse_context_plan(es->deparse_cxt, named, ancestors)};
  List* const filter = list_concat(list_concat_copy(expressions.order, expressions.early),
                                   list_copy(expressions.late));
  const bool ran = es->analyze && node->pairs.run != nullptr && own->instrument != nullptr;
  ExplainPropertyText("Join Method", method_of(node), es);
  ExplainPropertyText("Join Type", name_of(node->data.join_type), es);
  if (expressions.condition != nullptr)
    ExplainPropertyText("Join Cond", words(expressions.condition), es);
  if (ran && has_row_radii(node) && std::isfinite(node->report.largest_radius))
    explain_number("Largest Radius", node->report.largest_radius, es);
  if (ran && node->pairs.classes.side != nullptr)
    explain_count("Radius Classes", static_cast<std::uint64_t>(node->pairs.classes.count), es);
  if (ran && (node->report.evaluated > 0 || es->format != EXPLAIN_FORMAT_TEXT))
    explain_count("Evaluated Pairs", node->report.evaluated, es);
  if (ran)
    explain_removed("Rows Removed by Recheck", static_cast<double>(node->report.rejected), own, es);
  if (const char* const reason = name_of(node->data.groups.refusal))
    ExplainPropertyText("Sums Fallback", reason, es);
  node->result->explain(node, words, es);
  explain_conditions("Join Filter", filter, words, es);
  if (ran && filter != NIL)
    explain_removed("Rows Removed by Join Filter", own->instrument->nfiltered2, own, es);
  if (node->pairs.keys != nullptr)
    explain_conditions("Index Keys", node->pairs.keys->conditions, words, es);
  if (ran && node->pairs.keys != nullptr && node->pairs.keys->problem != nullptr)
    ExplainPropertyText("Index Keys Fallback", node->pairs.keys->problem, es);
  explain_conditions("Filter", expressions.where, words, es);
  if (ran && expressions.where != NIL)
    explain_removed("Rows Removed by Filter", own->instrument->nfiltered1, own, es);
  if (!ran) return;
  explain_work(node, es);
  JoinReport report = report_run(node->pairs.run);
  if (node->pairs.classes.side != nullptr) add_work(node->pairs.classes.before, &report.stats);
  report.stats.rechecked += node->report.evaluated;
  if (node->report.loop_reason != nullptr)
    strlcpy(report.fallback, node->report.loop_reason, sizeof report.fallback);
  explain_report(report, es);
}

}  // namespace gpujoin
