// Makes the plan of a node that finds nearest rows. The second input is a scan of the right rows.
// For a LATERAL subquery it is a scan of the subquery's table.
#include "pg/planner/conditions.h"
#include "pg/planner/join_conditions.h"
#include "pg/planner/pair_path.h"
#include "pg/planner/planning.h"
#include "pg/planner/scan_columns.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
}

namespace gpujoin {
namespace {

/// Returns columns for the expressions of the scan's target: numbered from 1, or if `beyond` from
/// the subquery's last column on, as the join knows them.
List* numbered_columns(const PlannerInfo* root, const RelOptInfo* inner, const List* targets,
                       bool beyond) {
  List* columns = NIL;
  ListCell* cell;
  foreach (cell, targets) {
    const int number = foreach_current_index(cell);
    const Node* const value = static_cast<const Node*>(lfirst(cell));
    append_column(&columns, makeVar(static_cast<int>(inner->relid),
                                    beyond ? attribute_of(root, inner, number)
                                           : static_cast<AttrNumber>(number + 1),
                                    exprType(value), exprTypmod(value), exprCollation(value), 0));
  }
  return columns;
}

/// Makes the plan of the scan. PostgreSQL puts a SubqueryScan above a subquery's plan, and removes
/// it later if it has nothing to do.
Plan* plan_scan(const PairPath& path) {
  PlannerInfo* const subroot = path.inner->subroot;
  List* columns = NIL;
  ListCell* cell;
  foreach (cell, path.scan->pathtarget->exprs) append_column(&columns, lfirst(cell));
  List* const wanted = subroot->processed_tlist;
  subroot->processed_tlist = columns;  // whose names the plan's columns get
  Plan* const plan = create_plan(subroot, path.scan);
  subroot->processed_tlist = wanted;
  SubqueryScan* const scan = makeNode(SubqueryScan);
  scan->scan.scanrelid = path.inner->relid;
  scan->scan.plan.targetlist =
      numbered_columns(subroot, path.inner, path.scan->pathtarget->exprs, false);
  scan->scan.plan.startup_cost = plan->startup_cost;
  scan->scan.plan.total_cost = plan->total_cost;
  scan->scan.plan.plan_rows = plan->plan_rows;
  scan->scan.plan.plan_width = plan->plan_width;
  scan->subplan = plan;
  return &scan->scan.plan;
}

/// Sets where the subquery's columns come from: from the scan's rows, or computed by the node.
void find_outputs(const PlannerInfo* root, const PairPath& path, ScanColumns* scan) {
  const List* const targets = path.scan->pathtarget->exprs;
  List* const beyond = numbered_columns(root, path.inner, targets, true);
  List *right = beyond, *computed = NIL;
  ListCell* cell;
  foreach (cell, path.nearest.outputs) {
    Node* const output = static_cast<Node*>(lfirst(cell));
    const auto number = static_cast<AttrNumber>(foreach_current_index(cell) + 1);
    Var* const column = makeVar(static_cast<int>(path.inner->relid), number, exprType(output),
                                exprTypmod(output), exprCollation(output), 0);
    AttrNumber attribute = 0;
    ListCell* other;
    foreach (other, beyond)
      if (equal(lfirst_node(TargetEntry, other)->expr, output))
        attribute = lfirst_node(TargetEntry, other)->resno;
    TargetEntry* const entry =
        makeTargetEntry(reinterpret_cast<Expr*>(column), attribute, nullptr, false);
    (attribute > 0 ? right : computed) =
        lappend(attribute > 0 ? list_copy(right) : computed, entry);
  }
  scan->right = right;
  scan->computed = computed;
}

/// Returns the expressions of the scan tuple's computed columns, in their order. Adds the columns
/// that these expressions need.
List* computed_outputs(const PairPath& path, ScanColumns* scan) {
  List* outputs = NIL;
  for (int i = 0; i < list_length(scan->columns); ++i) {
    if (list_nth_int(scan->attributes, i) != 0) continue;
    const Expr* const column = list_nth_node(TargetEntry, scan->columns, i)->expr;
    outputs = lappend(outputs, IsA(column, Var)
                                   ? list_nth(path.nearest.outputs,
                                              reinterpret_cast<const Var*>(column)->varattno - 1)
                                   : path.clause.condition);
  }
  add_columns(scan, outputs);
  return outputs;
}

/// Adds the columns of a target list or of expressions above the node. A distance among them
/// becomes a column that the node computes.
void add_columns_above(ScanColumns* scan, const List* above, const List* distances) {
  ListCell* cell;
  foreach (cell, above) {
    void* value = lfirst(cell);
    if (IsA(value, TargetEntry)) value = static_cast<TargetEntry*>(value)->expr;
    if (list_member(distances, value))
      add_computed(scan, static_cast<Expr*>(value));
    else
      add_columns(scan, value);
  }
}

AttrNumber value_attribute(const PairPath& path) {
  int number = 0;
  ListCell* cell;
  foreach (cell, path.scan->pathtarget->exprs) {
    ++number;
    if (equal(lfirst(cell), path.nearest.value)) break;
  }
  return static_cast<AttrNumber>(number);
}

JoinPlanExpressions expressions_of(const PairPath& path) {
  const NearestClause& clause = path.nearest;
  JoinPlanExpressions parts = {};
  parts.early = clause.conditions;
  parts.condition = clause.radius.condition;
  parts.distance = clause.distance.condition;
  parts.limit = clause.limit;
  if (path.inner == nullptr) return parts;
  List *joined = NIL, *pushed = NIL;
  if (IS_OUTER_JOIN(path.type))
    extract_actual_join_clauses(path.conditions, path.join->relids, &joined, &pushed);
  else
    joined = extract_actual_clauses(path.conditions, false);
  parts.late = list_concat(extract_actual_clauses(path.inner->baserestrictinfo, false), joined);
  parts.where = pushed;
  return parts;
}

/// Has the scan of a subquery's table, or the node, compute the compared value.
void place_value_of_subquery(PlannerInfo* root, const PairPath& path, JoinPlanData* data,
                             JoinPlanExpressions* parts) {
  if (path.nearest.computes) {
    parts->right_operand = path.clause.right;
    data->right.trap = trap_of(root, path.clause.right, false);
  } else {
    data->right.value = value_attribute(path);
  }
}

}  // namespace

Plan* plan_nearest(PlannerInfo* root, PairPath* path, List* columns, List* inputs) {
  note_served(root, path->join);
  const SimilarityClause& distance = path->clause;
  const bool of_subquery = path->inner != nullptr;
  if (of_subquery) planning_of(path->inner->subroot)->ranked = true;
  JoinPlanExpressions parts = expressions_of(*path);
  Plan* left = static_cast<Plan*>(linitial(inputs));
  Plan* right = of_subquery ? plan_scan(*path) : static_cast<Plan*>(lsecond(inputs));
  JoinPlanData data = {};
  data.join_type = path->type;
  set_radius(root, path->nearest.radius.eps, &data, &parts);
  data.test = distance.test;
  data.boxes = path->nearest.boxes;
  data.nearest = {true, parts.condition != nullptr, path->nearest.radius.test, path->processes};
  if (parts.condition == nullptr) data.nearest.radius = data.test;
  data.left.value =
      place_operand(root, &left, distance.left, false, &parts.left_operand, &data.left.trap);
  if (of_subquery)
    place_value_of_subquery(root, *path, &data, &parts);
  else
    data.right.value =
        place_operand(root, &right, distance.right, false, &parts.right_operand, &data.right.trap);
  ScanColumns scan = {NIL, NIL, NIL, left->targetlist, of_subquery ? NIL : right->targetlist, NIL};
  if (of_subquery) find_outputs(root, *path, &scan);
  add_columns_above(&scan, columns, path->distances);
  add_columns_above(&scan, path->custom.path.pathtarget->exprs, path->distances);
  add_columns_above(&scan, path->distances, path->distances);
  for (void* const used :
       {static_cast<void*>(parts.where), static_cast<void*>(parts.late),
        static_cast<void*>(parts.early), static_cast<void*>(parts.condition),
        static_cast<void*>(parts.distance), static_cast<void*>(parts.left_operand),
        static_cast<void*>(parts.right_operand)})
    add_columns(&scan, used);
  if (of_subquery) parts.outputs = computed_outputs(*path, &scan);
  describe_columns(scan, &data);
  return make_join_scan(path->custom.flags, columns, left, right, scan, data, parts);
}

}  // namespace gpujoin
