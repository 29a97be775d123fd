// Makes the plan of a node over two inputs that finds pairs, or counts, sums or first pairs.
#include "pg/planner/conditions.h"
#include "pg/planner/join_conditions.h"
#include "pg/planner/key_clause.h"
#include "pg/planner/pair_path.h"
#include "pg/planner/safe_expression.h"
#include "pg/planner/scan_columns.h"
#include "pg/planner/sum_clause.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
}

namespace gpujoin {
namespace {

/// Returns the index of a key among the columns.
int column_of(const List* columns, const Var* key) {
  ListCell* cell;
  foreach (cell, columns) {
    const Var* const column = reinterpret_cast<const Var*>(lfirst_node(TargetEntry, cell)->expr);
    if (IsA(column, Var) && column->varno == key->varno && column->varattno == key->varattno)
      return foreach_current_index(cell);
  }
  elog(ERROR, "a key of a similarity join is missing");
}

/// Returns true if the operand may not be NULL in rows of an outer join without a right row. Then
/// the value computed by the right input is not the operand's value there.
bool becomes_known(JoinType type, Expr* right_operand) {
  return IS_OUTER_JOIN(type) && contain_nonstrict_functions(reinterpret_cast<Node*>(right_operand));
}

/// Adds the columns that groups and aggregates need.
void add_sum_columns(ScanColumns* scan, const SumsOfJoin& wanted) {
  if (!are_wanted(wanted)) return;
  add_columns(scan, wanted.groups);
  ListCell* cell;
  foreach (cell, wanted.sums) {
    const SumExpressions& expressions = static_cast<SumClause*>(lfirst(cell))->expressions;
    add_columns(scan, expressions.argument);
    add_columns(scan, expressions.filter);
    add_columns(scan, expressions.leaves);
  }
}

/// Returns the aggregate whose state the column has.
const SumClause& sum_of_column(const SumsOfJoin& wanted, const Expr* column) {
  ListCell* cell;
  foreach (cell, wanted.sums) {
    const SumClause* const sum = static_cast<SumClause*>(lfirst(cell));
    const Aggref* const shown = wanted.finishes ? sum->aggregate : partial_of(sum->aggregate);
    if (equal(shown, column)) return *sum;
  }
  elog(ERROR, "an aggregate of a similarity join is missing");
}

/// Describes the columns of a GROUP BY or DISTINCT.
void describe_groups(const List* clauses, const List* groups, JoinPlanData* data) {
  data->groups.columns = list_length(clauses);
  data->groups.operators = static_cast<Oid*>(palloc(sizeof(Oid) * (data->groups.columns + 1)));
  data->groups.collations = static_cast<Oid*>(palloc(sizeof(Oid) * (data->groups.columns + 1)));
  for (int i = 0; i < data->groups.columns; ++i) {
    data->groups.operators[i] = list_nth_node(SortGroupClause, clauses, i)->eqop;
    data->groups.collations[i] = exprCollation(static_cast<Node*>(list_nth(groups, i)));
  }
}

/// Describes the aggregates, in the order of the columns.
void describe_sums(const PlannerInfo* root, const SumsOfJoin& wanted, const ScanColumns& scan,
                   JoinPlanData* data, JoinPlanExpressions* parts) {
  if (!are_wanted(wanted)) return;
  data->groups.finishes = wanted.finishes;
  data->groups.sums = static_cast<SumPlan*>(palloc0(sizeof(SumPlan) * list_length(scan.columns)));
  for (int i = 0; i < data->columns.count; ++i) {
    if (data->columns.attributes[i] != 0) continue;
    const SumClause& sum = sum_of_column(wanted, list_nth_node(TargetEntry, scan.columns, i)->expr);
    data->groups.sums[data->groups.sum_count++] = sum.plan;
    parts->sums = lappend(parts->sums, encode_sum(sum.expressions));
  }
  describe_groups(wanted.clauses, wanted.groups, data);
  ListCell* cell;
  foreach (cell, wanted.groups)
    data->groups.may_raise =
        data->groups.may_raise || !cannot_raise(root, static_cast<Expr*>(lfirst(cell)));
  parts->groups = wanted.groups;
}

void describe_keys(const List* keys, JoinPlanData* data, JoinPlanExpressions* parts) {
  data->keys = static_cast<KeyPlan*>(palloc0(sizeof(KeyPlan) * (list_length(keys) + 1)));
  ListCell* cell;
  foreach (cell, keys) {
    const KeyClause* const key = static_cast<KeyClause*>(lfirst(cell));
    data->keys[data->key_count++] = key->plan;
    parts->keys = lappend(parts->keys, encode_key(key->expressions));
  }
}

/// Returns how errors of an input's scan conditions are handled. Readers of the table may evaluate
/// these conditions in any order of rows.
ErrorTrap filter_trap(const PlannerInfo* root, const Plan* input) {
  if (IsA(input, Gather)) input = outerPlan(input);
  Expr* const conditions = reinterpret_cast<Expr*>(input->qual);
  if (cannot_raise(root, conditions)) return ErrorTrap::kNone;
  return can_drop_errors(root, conditions) ? ErrorTrap::kCatch : ErrorTrap::kSubtransaction;
}

}  // namespace

Plan* plan_pairs(PlannerInfo* root, PairPath* path, List* columns, List* inputs) {
  note_served(root, path->join);
  const SimilarityClause& clause = path->clause;
  Conditions conditions =
      sort_conditions(root, clause, path->type, path->conditions, path->join->relids,
                      left_relids(path), right_relids(path));
  JoinPlanExpressions& parts = conditions.parts;
  if (path->counts) parts.where = path->having;
  if (path->sums.finishes) parts.where = path->sums.having;
  Plan *left = static_cast<Plan*>(linitial(inputs)), *right = static_cast<Plan*>(lsecond(inputs));
  JoinPlanData data = {};
  data.join_type = path->type;
  data.test = clause.test;
  data.names_matches = path->names_matches;
  data.counts = path->counts;
  data.grouped = path->grouped;
  data.top = path->top;
  data.groups.refusal = path->sums_refusal;
  set_radius(root, clause.eps, &data, &parts);
  const bool for_all_rows = computes_all_operands(root, path->type, path->conditions);
  data.left.value =
      place_operand(root, &left, clause.left, for_all_rows, &parts.left_operand, &data.left.trap);
  data.right.value = place_operand(root, &right, clause.right, for_all_rows, &parts.right_operand,
                                   &data.right.trap);
  data.left.filter = filter_trap(root, left);
  data.right.filter = filter_trap(root, right);
  if (clause.radii[0] != nullptr) data.left.radius = place_value(&left, clause.radii[0]);
  if (clause.radii[1] != nullptr) data.right.radius = place_value(&right, clause.radii[1]);
  data.rounds_radii = clause.rounds_radii;
  data.boxes = conditions.boxes;
  if (path->score.left != nullptr) {
    data.top.left_score = place_value(&left, path->score.left);
    data.top.right_score = place_value(&right, path->score.right);
  }
  ScanColumns scan = {NIL, NIL, NIL, left->targetlist, right->targetlist, NIL};
  // First the columns of the target list, in its order, so that rows need no projection.
  add_columns(&scan, columns);
  add_columns(&scan, path->custom.path.pathtarget->exprs);
  add_columns(&scan, parts.where);
  add_columns(&scan, conditions.all);
  add_columns(&scan, path->order);
  add_sum_columns(&scan, path->sums);
  if (data.left.value > 0) add_operand(&scan, clause.left, true, data.left.value);
  if (data.right.value > 0 && !becomes_known(path->type, clause.right))
    add_operand(&scan, clause.right, false, data.right.value);
  describe_columns(scan, &data);
  describe_sums(root, path->sums, scan, &data, &parts);
  if (path->grouped)
    describe_groups(group_clauses(root),
                    get_sortgrouplist_exprs(group_clauses(root), root->processed_tlist), &data);
  describe_keys(path->keys, &data, &parts);
  if (conditions.order != KeyOrder::kNone)
    data.order = {conditions.order, conditions.keys[0]->vartype,
                  column_of(scan.columns, conditions.keys[0]),
                  column_of(scan.columns, conditions.keys[1])};
  parts.score = path->order;
  return make_join_scan(path->custom.flags, columns, left, right, scan, data, parts);
}

}  // namespace gpujoin
