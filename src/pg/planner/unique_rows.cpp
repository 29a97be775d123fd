#include "pg/planner/unique_rows.h"

extern "C" {
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
}

namespace gpujoin {
namespace {

bool is_table(const RelOptInfo* relation) {
  return relation->reloptkind == RELOPT_BASEREL && relation->rtekind == RTE_RELATION;
}

}  // namespace

bool is_grouped_by_key(PlannerInfo* root, RelOptInfo* relation, List* clauses) {
  if (!is_table(relation)) return false;
  List *columns = NIL, *operators = NIL;
  ListCell* cell;
  foreach (cell, clauses) {
    SortGroupClause* const clause = lfirst_node(SortGroupClause, cell);
    Node* const column = get_sortgroupclause_expr(clause, root->processed_tlist);
    if (!IsA(column, Var)) continue;
    const Var* const var = reinterpret_cast<const Var*>(column);
    if (!bms_is_member(var->varno, relation->relids) ||
        !is_never_null(root, relation, var->varattno))
      continue;
    columns = lappend(columns, column);
    operators = lappend_oid(operators, clause->eqop);
  }
  return columns != NIL && relation_has_unique_index_for(root, relation, NIL, columns, operators);
}

bool is_key(PlannerInfo* root, Relids relations, const Var* column, Oid equality) {
  if (bms_membership(relations) != BMS_SINGLETON || !bms_is_member(column->varno, relations))
    return false;
  RelOptInfo* const relation = find_base_rel(root, column->varno);
  return is_table(relation) && is_never_null(root, relation, column->varattno) &&
         relation_has_unique_index_for(root, relation, NIL, list_make1(const_cast<Var*>(column)),
                                       list_make1_oid(equality));
}

}  // namespace gpujoin
