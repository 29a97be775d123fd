#include "pg/planner/nearest_clause.h"

#include "engine/request/request.h"
#include "pg/planner/comparison.h"
#include "pg/planner/implied_distance.h"
#include "pg/planner/join_conditions.h"
#include "pg/planner/safe_expression.h"

extern "C" {
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
}

namespace gpujoin {
namespace {

constexpr Oid kFloat8Greater = 674;       // the operator, which has no name in PostgreSQL's headers
constexpr std::int64_t kMostRows = 1000;  // beyond, neighbours take more memory than pairs may

/// What an expression of the subquery becomes in the join.
struct Translation {
  PlannerInfo* root;
  const RelOptInfo* outer;
  const RelOptInfo* inner;
  List* columns;  ///< NearestClause::columns
  bool fails;     ///< it has something that the join does not know
};

/// The value of the outer row that a parameter of the subquery is; null: it is none.
Node* outer_value(const RelOptInfo* inner, const Param* param) {
  if (param->paramkind != PARAM_EXEC) return nullptr;
  ListCell* cell;
  foreach (cell, inner->subplan_params) {
    const PlannerParamItem* const item = static_cast<PlannerParamItem*>(lfirst(cell));
    if (item->paramId == param->paramid) return item->item;
  }
  return nullptr;
}

/// Walker: whether the expression has a value of the outer row.
bool uses_outer_row(Node* node, void* inner) {
  if (node == nullptr) return false;
  if (IsA(node, Param))
    return outer_value(static_cast<const RelOptInfo*>(inner), reinterpret_cast<Param*>(node)) !=
           nullptr;
  return walk_expression(node, uses_outer_row, inner);
}

}  // namespace

bool is_about_outer_row(const RelOptInfo* inner, Expr* expression) {
  return uses_outer_row(reinterpret_cast<Node*>(expression), const_cast<RelOptInfo*>(inner));
}

namespace {

/// The column of the subquery that stands for a column of its table.
Node* column_beyond(Translation* translation, const Var* column) {
  int number = 0;
  ListCell* cell;
  foreach (cell, translation->columns) {
    if (equal(lfirst(cell), column)) break;
    ++number;
  }
  if (number == list_length(translation->columns))
    translation->columns = lappend(translation->columns, copyObjectImpl(column));
  const RelOptInfo* const inner = translation->inner;
  return reinterpret_cast<Node*>(makeVar(static_cast<int>(inner->relid),
                                         attribute_of(translation->root, inner, number),
                                         column->vartype, column->vartypmod, column->varcollid, 0));
}

Node* translate(Node* node, void* context) {
  Translation* const translation = static_cast<Translation*>(context);
  if (node == nullptr) return nullptr;
  if (IsA(node, Param)) {
    Node* const value = outer_value(translation->inner, reinterpret_cast<Param*>(node));
    if (value == nullptr) return static_cast<Node*>(copyObjectImpl(node));
    const Var* const column = reinterpret_cast<const Var*>(value);
    if (IsA(value, Var) &&
        bms_is_member(static_cast<int>(column->varno), translation->outer->relids))
      return static_cast<Node*>(copyObjectImpl(value));
    translation->fails = true;
    return node;
  }
  if (IsA(node, Var)) {
    const Var* const column = reinterpret_cast<const Var*>(node);
    if (column->varlevelsup == 0) return column_beyond(translation, column);
    translation->fails = true;
    return node;
  }
  if (IsA(node, PlaceHolderVar) || IsA(node, SubPlan) || IsA(node, AlternativeSubPlan)) {
    translation->fails = true;
    return node;
  }
  return mutate_expression(node, translate, context);
}

/// Mutator: an expression of the table's columns in the subquery's own terms again.
Node* translate_back(Node* node, void* context) {
  const auto* const translation = static_cast<const Translation*>(context);
  if (node == nullptr) return nullptr;
  if (IsA(node, Var)) {
    const AttrNumber number = reinterpret_cast<const Var*>(node)->varattno;
    return static_cast<Node*>(copyObjectImpl(list_nth(
        translation->columns, number - attribute_of(translation->root, translation->inner, 0))));
  }
  return mutate_expression(node, translate_back, context);
}

/// The translated expression, the same at each evaluation; null: there is none.
Expr* translated(Translation* translation, Expr* expression) {
  Node* const node = reinterpret_cast<Node*>(expression);
  if (contain_volatile_functions(node)) return nullptr;
  Node* const found = translate(node, translation);
  return translation->fails ? nullptr : reinterpret_cast<Expr*>(found);
}

/// Whether the subquery consists of rows of a table, an order and a limit.
bool is_sorted_scan(const PlannerInfo* subroot) {
  const Query* const query = subroot->parse;
  return query->commandType == CMD_SELECT && query->setOperations == nullptr &&
         query->groupClause == NIL && query->groupingSets == NIL && query->havingQual == nullptr &&
         query->distinctClause == NIL && query->windowClause == NIL && !query->hasAggs &&
         !query->hasWindowFuncs && !query->hasTargetSRFs && query->rowMarks == NIL &&
         query->cteList == NIL && query->sortClause != NIL && query->limitCount != nullptr &&
         query->limitOffset == nullptr && query->limitOption == LIMIT_OPTION_COUNT &&
         subroot->init_plans == NIL;
}

/// The one table of the subquery; null: it has others, or none that can be scanned.
RelOptInfo* find_table(PlannerInfo* subroot) {
  const Node* from = reinterpret_cast<const Node*>(subroot->parse->jointree);
  while (IsA(from, FromExpr)) {  // views leave one within another
    const List* const items = reinterpret_cast<const FromExpr*>(from)->fromlist;
    if (list_length(items) != 1) return nullptr;
    from = static_cast<const Node*>(linitial(items));
  }
  if (!IsA(from, RangeTblRef)) return nullptr;
  const int number = reinterpret_cast<const RangeTblRef*>(from)->rtindex;
  RelOptInfo* const table = find_base_rel(subroot, number);
  const RangeTblEntry* const entry = planner_rt_fetch(number, subroot);
  const bool scans = entry->rtekind == RTE_RELATION && entry->tablesample == nullptr &&
                     bms_equal(subroot->all_baserels, table->relids);
  return scans ? table : nullptr;
}

/// The limit, if it is the same for all outer rows.
bool match_limit(const RelOptInfo* inner, NearestClause* clause) {
  constexpr double kUsual = 10;  // of a parameter
  Expr* const limit = reinterpret_cast<Expr*>(inner->subroot->parse->limitCount);
  Node* const node = reinterpret_cast<Node*>(limit);
  clause->limit = limit;
  clause->rows = kUsual;
  if (IsA(node, Const)) {
    const Const* const constant = reinterpret_cast<const Const*>(node);
    const std::int64_t rows = DatumGetInt64(constant->constvalue);
    clause->rows = static_cast<double>(rows);
    return !constant->constisnull && rows >= 1 && rows <= kMostRows;
  }
  return !is_about_outer_row(inner, limit) && is_the_same_for_all_rows(limit) &&
         exprType(node) == INT8OID;
}

/// The number by which rows are in the order of `expression DESC`: NULL and NaN come first there.
Expr* descending_rank(Expr* expression) {
  Expr* const is_nan =
      make_call(F_FLOAT8EQ, BOOLOID, list_make2(expression, float8_constant(get_float8_nan())));
  return make_case(
      list_make2(make_when(make_null_test(expression), float8_constant(-get_float8_infinity())),
                 make_when(is_nan, float8_constant(-1e308))),
      make_call(F_FLOAT8UM, FLOAT8OID, list_make1(expression)));
}

/// What rows are sorted by, the nearest first: a distance, or arithmetic over one that rises with
/// it, as `1 - (a.v <=> b.v) DESC` does.
bool match_sort(Translation* translation, const SortGroupClause& key, Expr* expression,
                SimilarityClause* distance) {
  const Relids outer = translation->outer->relids, inner = translation->inner->relids;
  const auto matches = [&](Expr* measured) {
    return match_distance(translation->root, measured, outer, inner, distance);
  };
  if (is_nearest_first(key) && matches(expression)) return true;
  const bool descending = key.sortop == kFloat8Greater && key.nulls_first;
  if (!is_nearest_first(key) && !descending) return false;
  Expr* const measured = distance_below(expression, descending);
  // Boxes of areas are compared in the distance's own unit.
  if (measured == nullptr || !matches(measured) ||
      has_form(*distance->test.type, ValueForm::kMiddle))
    return false;
  distance->condition = descending ? descending_rank(expression) : expression;
  distance->test.open = true;
  distance->test.of_nan = descending;
  distance->test.of_null = distance->test.of_null || descending;  // least(1, NULL) has a value
  return true;
}

/// The distance that the subquery sorts by, nearest first, and the keys after it.
bool match_order(Translation* translation, NearestClause* clause) {
  const PlannerInfo* const subroot = translation->inner->subroot;
  const Query* const query = subroot->parse;
  const SortGroupClause* const first = linitial_node(SortGroupClause, query->sortClause);
  Expr* const order = reinterpret_cast<Expr*>(
      get_sortgroupclause_expr(const_cast<SortGroupClause*>(first), query->targetList));
  Expr* const distance = translated(translation, order);
  if (distance == nullptr || !match_sort(translation, *first, distance, &clause->distance))
    return false;
  clause->value = reinterpret_cast<Expr*>(
      translate_back(reinterpret_cast<Node*>(clause->distance.right), translation));
  clause->keys = list_copy_tail(query->sortClause, 1);
  ListCell* cell;
  foreach (cell, clause->keys) {
    const Node* const key =
        get_sortgroupclause_expr(lfirst_node(SortGroupClause, cell), query->targetList);
    if (!IsA(key, Var)) return false;
    column_beyond(translation, reinterpret_cast<const Var*>(key));
  }
  return true;
}

/// The conditions: about the table's rows alone, a radius, and others. PostgreSQL evaluates one for
/// the rows that those before it leave. Here those about the table's rows come first, so of these
/// none may raise errors that comes after one about both rows. A radius in each inner row bounds no
/// search.
bool match_conditions(Translation* translation, NearestClause* clause) {
  List* const conditions =
      cheapest_first(translation->inner->subroot, clause->table->baserestrictinfo, false);
  ListCell* cell;
  int before_radius = 0;
  bool about_both = false;
  foreach (cell, conditions) {
    RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
    if (contain_volatile_functions(reinterpret_cast<Node*>(info->clause))) return false;
    if (!is_about_outer_row(translation->inner, info->clause)) {
      if (about_both && !cannot_raise(translation->inner->subroot, info->clause)) return false;
      clause->scan_conditions = lappend(clause->scan_conditions, info);
      continue;
    }
    about_both = true;
    Expr* const condition = translated(translation, info->clause);
    if (condition == nullptr) return false;
    SimilarityClause radius;
    if (match_radius(translation->root, condition, clause->distance, translation->outer->relids,
                     translation->inner->relids, &radius)) {
      if (radius.radii[1] != nullptr) return false;
      if (clause->radius.condition == nullptr && !has_row_radii(radius)) {
        clause->radius = radius;
        clause->radius_info = info;
        before_radius = list_length(clause->conditions);
        continue;
      }
    }
    if (clause->boxes == BoxRule::kNone)
      clause->boxes = box_rule(translation->root, condition, clause->distance,
                               translation->outer->relids, translation->inner->relids);
    clause->conditions = lappend(clause->conditions, condition);
  }
  clause->conditions =
      in_order(translation->root, clause->conditions, before_radius, clause->radius.condition);
  return true;
}

bool match_outputs(Translation* translation, NearestClause* clause) {
  ListCell* cell;
  foreach (cell, translation->inner->subroot->parse->targetList) {
    const TargetEntry* const entry = lfirst_node(TargetEntry, cell);
    if (entry->resjunk) continue;
    Expr* const output = translated(translation, entry->expr);
    if (output == nullptr) return false;
    clause->outputs = lappend(clause->outputs, output);
  }
  return true;
}

}  // namespace

AttrNumber attribute_of(const PlannerInfo* root, const RelOptInfo* inner, int column) {
  const RangeTblEntry* const entry = planner_rt_fetch(inner->relid, const_cast<PlannerInfo*>(root));
  return static_cast<AttrNumber>(list_length(entry->eref->colnames) + column + 1);
}

Refusal match_nearest(PlannerInfo* root, const RelOptInfo* outer, const RelOptInfo* inner,
                      NearestClause* clause) {
  *clause = {};
  if (inner->rtekind != RTE_SUBQUERY || inner->reloptkind != RELOPT_BASEREL ||
      inner->subroot == nullptr || !bms_is_empty(inner->attr_needed[0 - inner->min_attr]) ||
      !bms_is_subset(inner->lateral_relids, outer->relids) || !is_sorted_scan(inner->subroot))
    return Refusal::kNearest;
  if (!match_limit(inner, clause)) return Refusal::kNearestLimit;
  clause->table = find_table(inner->subroot);
  if (clause->table == nullptr) return Refusal::kNearest;
  Translation translation = {root, outer, inner, NIL, false};
  if (!match_order(&translation, clause)) return Refusal::kNearestOrder;
  if (!match_conditions(&translation, clause) || !match_outputs(&translation, clause))
    return Refusal::kNearestValues;
  clause->columns = translation.columns;
  clause->computes = !cannot_raise(inner->subroot, clause->value);
  return can_have_values(root, clause->distance) ? Refusal::kNone : Refusal::kOperands;
}

}  // namespace gpujoin
