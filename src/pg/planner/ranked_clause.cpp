#include "pg/planner/ranked_clause.h"

#include <cmath>
#include <limits>

#include "pg/planner/comparison.h"
#include "pg/planner/join_conditions.h"
#include "pg/planner/safe_expression.h"
#include "pg/planner/unique_rows.h"

extern "C" {
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"
}

namespace gpujoin {
namespace {

constexpr std::int64_t kMostRows = 1000;  // as of a LATERAL subquery's limit
constexpr double kUnranked = std::numeric_limits<double>::infinity();

/// What is ranked: the rows of each group by an order.
struct Ranking {
  List* groups;  ///< of SortGroupClause
  List* order;   ///< likewise
  std::int64_t rows;
};

/// The query ranks by one window, and nothing else, and drops the ranks beyond some.
bool match_window(PlannerInfo* root, Ranking* ranking) {
  const Query* const query = root->parse;
  if (!query->hasWindowFuncs || list_length(query->windowClause) != 1 ||
      query->distinctClause != NIL || query->limitCount != nullptr || query->limitOffset != nullptr)
    return false;
  const WindowClause* const window = linitial_node(WindowClause, query->windowClause);
  List* const used = pull_var_clause(reinterpret_cast<Node*>(root->processed_tlist),
                                     PVC_INCLUDE_WINDOWFUNCS | PVC_RECURSE_PLACEHOLDERS);
  ListCell* cell;
  double least = kUnranked;
  foreach (cell, used) {
    if (!IsA(lfirst(cell), WindowFunc)) continue;
    const WindowFunc* const function = lfirst_node(WindowFunc, cell);
    if (function->winfnoid != F_ROW_NUMBER) return false;
    least = fmin(least, highest_rank(window, function, kUnranked));
  }
  if (least < 1 || least == kUnranked) return false;
  *ranking = {window->partitionClause, window->orderClause, static_cast<std::int64_t>(least)};
  return true;
}

/// DISTINCT ON: the first row of each group by the keys of ORDER BY after those of the groups.
bool match_distinct(PlannerInfo* root, Ranking* ranking) {
  const Query* const query = root->parse;
  const int groups = list_length(query->distinctClause);
  if (!query->hasDistinctOn || query->hasWindowFuncs || groups == 0 ||
      list_length(query->sortClause) <= groups)
    return false;
  for (int i = 0; i < groups; ++i) {
    const auto* const key = list_nth_node(SortGroupClause, query->sortClause, i);
    if (get_sortgroupref_clause_noerr(key->tleSortGroupRef, query->distinctClause) == nullptr)
      return false;
  }
  *ranking = {query->distinctClause, list_copy_tail(query->sortClause, groups), 1};
  return true;
}

/// Whether the groups are the rows of the relation: its key is among their columns, and no column
/// of another one.
bool are_rows_of(PlannerInfo* root, RelOptInfo* relation, List* groups) {
  ListCell* cell;
  foreach (cell, groups) {
    const Node* const column =
        get_sortgroupclause_expr(lfirst_node(SortGroupClause, cell), root->processed_tlist);
    if (!IsA(column, Var) ||
        !bms_is_member(static_cast<int>(reinterpret_cast<const Var*>(column)->varno),
                       relation->relids))
      return false;
  }
  return is_grouped_by_key(root, relation, groups);
}

/// The distance, nearest first, and inner columns after it. A column of the outer row decides
/// nothing among its rows.
bool match_order(PlannerInfo* root, List* order, const RelOptInfo* outer, const RelOptInfo* inner,
                 NearestClause* clause) {
  if (order == NIL) return false;
  const auto* const first = linitial_node(SortGroupClause, order);
  if (!is_nearest_first(*first)) return false;
  Expr* const distance = reinterpret_cast<Expr*>(
      get_sortgroupclause_expr(const_cast<SortGroupClause*>(first), root->processed_tlist));
  if (!match_distance(root, distance, outer->relids, inner->relids, &clause->distance))
    return false;
  for (int i = 1; i < list_length(order); ++i) {
    auto* const key = list_nth_node(SortGroupClause, order, i);
    const Node* const column = get_sortgroupclause_expr(key, root->processed_tlist);
    if (!IsA(column, Var)) return false;
    const int relation = static_cast<int>(reinterpret_cast<const Var*>(column)->varno);
    if (bms_is_member(relation, outer->relids)) continue;
    if (!bms_is_member(relation, inner->relids)) return false;
    clause->keys = lappend(clause->keys, key);
  }
  return true;
}

/// The radius and the other conditions.
bool match_conditions(PlannerInfo* root, const List* conditions, const RelOptInfo* outer,
                      const RelOptInfo* inner, NearestClause* clause) {
  int before_radius = 0;
  ListCell* cell;
  foreach (cell, cheapest_first(root, conditions, true)) {
    const RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
    if (info->pseudoconstant || info->security_level > 0 ||
        contain_volatile_functions(reinterpret_cast<Node*>(info->clause)))
      return false;
    SimilarityClause radius;
    if (clause->radius.condition == nullptr &&
        match_radius(root, info->clause, clause->distance, outer->relids, inner->relids, &radius) &&
        !has_row_radii(radius)) {
      clause->radius = radius;
      before_radius = list_length(clause->conditions);
      continue;
    }
    clause->conditions = lappend(clause->conditions, info->clause);
  }
  clause->conditions = in_order(root, clause->conditions, before_radius, clause->radius.condition);
  return true;
}

}  // namespace

double highest_rank(const WindowClause* window, const WindowFunc* function, double unknown) {
  double highest = kUnranked;
  ListCell* cell;
  foreach (cell, run_conditions(window, function)) {
    RunCondition condition;
    if (!read_run_condition(static_cast<Node*>(lfirst(cell)), function, &condition)) continue;
    const int strategy = order_strategy(condition.operation);
    const bool strict = strategy == BTLessStrategyNumber || strategy == BTGreaterStrategyNumber;
    const bool less = strategy == BTLessStrategyNumber || strategy == BTLessEqualStrategyNumber;
    if (strategy == 0 || less != condition.window_first) continue;
    double limit;
    highest = fmin(highest, read_number(condition.value, &limit) ? limit - strict : unknown);
  }
  return highest;
}

bool match_ranks(PlannerInfo* root, const RelOptInfo* join, RelOptInfo* outer,
                 const RelOptInfo* inner, const List* conditions, NearestClause* clause) {
  const Query* const query = root->parse;
  *clause = {};
  Ranking ranking;
  if (query->commandType != CMD_SELECT || query->hasAggs || query->groupClause != NIL ||
      query->groupingSets != NIL || query->havingQual != nullptr || query->hasTargetSRFs ||
      query->setOperations != nullptr || root->rowMarks != NIL || root->join_info_list != NIL ||
      !bms_equal(join->relids, root->all_baserels) ||
      (!match_window(root, &ranking) && !match_distinct(root, &ranking)))
    return false;
  clause->rows = static_cast<double>(ranking.rows);
  clause->limit = reinterpret_cast<Expr*>(makeConst(INT8OID, -1, InvalidOid, sizeof(std::int64_t),
                                                    Int64GetDatum(ranking.rows), false, true));
  return ranking.rows <= kMostRows &&
         !contain_volatile_functions(reinterpret_cast<Node*>(root->processed_tlist)) &&
         match_order(root, ranking.order, outer, inner, clause) &&
         are_rows_of(root, outer, ranking.groups) &&
         match_conditions(root, conditions, outer, inner, clause) &&
         can_have_values(root, clause->distance);
}

}  // namespace gpujoin
