#include "pg/executor/input_scan.h"

extern "C" {
#include "rewrite/rewriteManip.h"
#include "utils/snapmgr.h"
}

namespace gpujoin {
namespace {

/// The column that an entry of a target list is; null: it is something else.
const Var* column_at(const List* targets, AttrNumber number) {
  const Node* const value =
      reinterpret_cast<const Node*>(list_nth_node(TargetEntry, targets, number - 1)->expr);
  return IsA(value, Var) ? reinterpret_cast<const Var*>(value) : nullptr;
}

}  // namespace

bool may_read_tables(const EState* state) {
  return state->es_snapshot == GetActiveSnapshot() && state->es_epq_active == nullptr;
}

const SeqScanState* table_scan(const PlanState* input) {
  if (IsA(input, GatherState)) input = outerPlanState(input);
  return IsA(input, SeqScanState) ? reinterpret_cast<const SeqScanState*>(input) : nullptr;
}

AttrNumber table_column(const PlanState* input, AttrNumber column) {
  const SeqScanState* const scan = table_scan(input);
  if (scan == nullptr || column <= 0) return InvalidAttrNumber;
  const Var* var = column_at(input->plan->targetlist, column);
  if (var != nullptr && var->varno == OUTER_VAR)  // a Gather's, of the scan below it
    var = column_at(scan->ss.ps.plan->targetlist, var->varattno);
  return var != nullptr ? var->varattno : InvalidAttrNumber;
}

bool are_alike(const PlanState* left, const PlanState* right) {
  const SeqScanState *const one = table_scan(left), *const other = table_scan(right);
  if (one == nullptr || other == nullptr ||
      RelationGetRelid(one->ss.ss_currentRelation) !=
          RelationGetRelid(other->ss.ss_currentRelation))
    return false;
  const auto number = [](const SeqScanState* scan) {
    return static_cast<int>(reinterpret_cast<const Scan*>(scan->ss.ps.plan)->scanrelid);
  };
  List* const conditions = static_cast<List*>(copyObjectImpl(other->ss.ps.plan->qual));
  ChangeVarNodes(reinterpret_cast<Node*>(conditions), number(other), number(one), 0);
  return equal(conditions, one->ss.ps.plan->qual);
}

bool find_table_side(const PlanState* input, AttrNumber value, const ValueType& type,
                     ValueForm form, SideColumns* columns) {
  const AttrNumber attribute = table_column(input, value);
  if (attribute <= 0) return false;
  return take_value_columns(table_scan(input)->ss.ss_currentRelation, list_make1_int(attribute),
                            type, form, columns);
}

}  // namespace gpujoin
