#include "pg/planner/scan_columns.h"

#include "pg/executor/custom_scan.h"

extern "C" {
#include "optimizer/optimizer.h"
#include "optimizer/planmain.h"
}

namespace gpujoin {
namespace {

/// Whether two columns or placeholders are the same, whatever outer joins may do to them: that
/// differs between a node's input and its output.
bool same_column(const Node* a, const Node* b) {
  if (nodeTag(a) != nodeTag(b)) return false;
  if (IsA(a, PlaceHolderVar))
    return reinterpret_cast<const PlaceHolderVar*>(a)->phid ==
           reinterpret_cast<const PlaceHolderVar*>(b)->phid;
  if (!IsA(a, Var)) return false;
  const Var* const left = reinterpret_cast<const Var*>(a);
  const Var* const right = reinterpret_cast<const Var*>(b);
  return left->varno == right->varno && left->varattno == right->varattno &&
         left->varlevelsup == right->varlevelsup;
}

const TargetEntry* find_entry(const List* columns, const Node* wanted) {
  ListCell* cell;
  foreach (cell, columns) {
    const TargetEntry* const entry = lfirst_node(TargetEntry, cell);
    if (same_column(reinterpret_cast<const Node*>(entry->expr), wanted)) return entry;
  }
  return nullptr;
}

AttrNumber find_column(const List* columns, const Node* wanted) {
  const TargetEntry* const entry = find_entry(columns, wanted);
  return entry != nullptr ? entry->resno : InvalidAttrNumber;
}

void add_column(ScanColumns* scan, const Node* column, bool from_left, AttrNumber attribute) {
  append_column(&scan->columns, column);
  scan->from_left = lappend_int(scan->from_left, from_left);
  scan->attributes = lappend_int(scan->attributes, attribute);
}

Node* replace_columns(Node* node, void* columns) {
  if (node == nullptr) return nullptr;
  const TargetEntry* const entry = find_entry(static_cast<const List*>(columns), node);
  if (entry != nullptr) return static_cast<Node*>(copyObjectImpl(entry->expr));
  return mutate_expression(node, replace_columns, columns);
}

}  // namespace

void* with_columns_of(List* columns, void* expression) {
  return replace_columns(static_cast<Node*>(expression), columns);
}

void add_columns(ScanColumns* scan, void* expression) {
  List* const used =
      pull_var_clause(static_cast<Node*>(expression),
                      PVC_INCLUDE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_INCLUDE_PLACEHOLDERS);
  ListCell* cell;
  foreach (cell, used) {
    Node* const column = static_cast<Node*>(lfirst(cell));
    if (IsA(column, Aggref)) {
      add_computed(scan, reinterpret_cast<Expr*>(column));
      continue;
    }
    if (find_entry(scan->columns, column) != nullptr) continue;
    if (find_entry(scan->computed, column) != nullptr) {
      add_column(scan, column, false, 0);
      continue;
    }
    const AttrNumber left = find_column(scan->left, column);
    const AttrNumber right = left > 0 ? 0 : find_column(scan->right, column);
    if (left > 0 || right > 0) {
      add_column(scan, column, left > 0, left > 0 ? left : right);
      continue;
    }
    if (!IsA(column, PlaceHolderVar)) elog(ERROR, "a column of a similarity join is missing");
    add_columns(scan, reinterpret_cast<PlaceHolderVar*>(column)->phexpr);
  }
}

void add_computed(ScanColumns* scan, const Expr* expression) {
  ListCell* cell;
  foreach (cell, scan->columns)
    if (equal(lfirst_node(TargetEntry, cell)->expr, expression)) return;
  add_column(scan, reinterpret_cast<const Node*>(expression), false, 0);
}

void add_operand(ScanColumns* scan, Expr* operand, bool from_left, AttrNumber attribute) {
  if (find_entry(scan->columns, reinterpret_cast<Node*>(operand)) != nullptr) return;
  add_column(scan, static_cast<const Node*>(with_columns_of(scan->columns, operand)), from_left,
             attribute);
}

AttrNumber place_value(Plan** plan, Expr* value) {
  value = static_cast<Expr*>(with_columns_of((*plan)->targetlist, value));
  ListCell* cell;
  foreach (cell, (*plan)->targetlist) {
    const TargetEntry* const entry = lfirst_node(TargetEntry, cell);
    if (equal(entry->expr, value)) return entry->resno;
  }
  List* columns = list_copy((*plan)->targetlist);
  append_column(&columns, value);
  *plan = change_plan_targetlist(*plan, columns, (*plan)->parallel_safe);
  return static_cast<AttrNumber>(list_length(columns));
}

void describe_columns(const ScanColumns& scan, JoinPlanData* data) {
  data->columns.count = list_length(scan.columns);
  data->columns.from_left = static_cast<bool*>(palloc(data->columns.count + 1));
  data->columns.attributes =
      static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (data->columns.count + 1)));
  for (int i = 0; i < data->columns.count; ++i) {
    data->columns.from_left[i] = list_nth_int(scan.from_left, i) != 0;
    data->columns.attributes[i] = static_cast<AttrNumber>(list_nth_int(scan.attributes, i));
  }
}

Plan* make_join_scan(uint32 flags, List* columns, Plan* left, Plan* right, const ScanColumns& scan,
                     const JoinPlanData& data, const JoinPlanExpressions& parts) {
  CustomScan* const plan =
      make_custom_scan(NodeForm::kJoin, flags, columns, encode_join_plan(data));
  plan->custom_plans = list_make2(left, right);
  plan->custom_scan_tlist = scan.columns;
  plan->custom_exprs =
      static_cast<List*>(with_columns_of(scan.columns, encode_join_expressions(parts)));
  return &plan->scan.plan;
}

}  // namespace gpujoin
