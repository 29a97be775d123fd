#include "pg/planner/ranked_path.h"

#include "pg/executor/custom_scan.h"
#include "pg/executor/join_plan.h"
#include "pg/planner/conditions.h"
#include "pg/planner/join_conditions.h"
#include "pg/planner/join_estimate.h"
#include "pg/planner/nested_loops.h"
#include "pg/planner/ranked_clause.h"
#include "pg/planner/scan_columns.h"
#include "pg/settings.h"

extern "C" {
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
}

namespace gpujoin {
namespace {

/// A path with the description of its join.
struct RankedPath {
  CustomPath custom;  // first: PostgreSQL knows no more than this
  RankedClause clause;
};

/// CustomPathMethods::PlanCustomPath.
Plan* plan_path(PlannerInfo* root, RelOptInfo*, CustomPath* custom, List* tlist, List*,
                List* inputs) {
  const RankedClause& clause = reinterpret_cast<const RankedPath*>(custom)->clause;
  note_served(root, custom->path.parent);
  Plan *left = static_cast<Plan*>(linitial(inputs)), *right = static_cast<Plan*>(lsecond(inputs));
  JoinPlanExpressions parts = {};
  parts.early = clause.conditions;
  parts.condition = clause.radius.condition;
  parts.distance = clause.distance.condition;
  parts.limit = reinterpret_cast<Expr*>(makeConst(INT8OID, -1, InvalidOid, sizeof(std::int64_t),
                                                  Int64GetDatum(clause.rows), false, true));
  JoinPlanData data = {};
  data.join_type = JOIN_INNER;
  set_radius(root, clause.radius.eps, &data, &parts);
  data.test = clause.distance.test;
  data.nearest = {true, parts.condition != nullptr, clause.radius.test, 1};
  if (parts.condition == nullptr) data.nearest.radius = data.test;
  data.left_value = place_value(&left, clause.distance.left);
  data.right_value = place_value(&right, clause.distance.right);
  ScanColumns scan = {NIL, NIL, NIL, left->targetlist, right->targetlist, NIL};
  for (void* const used :
       {static_cast<void*>(tlist), static_cast<void*>(custom->path.pathtarget->exprs),
        static_cast<void*>(parts.early), static_cast<void*>(parts.condition),
        static_cast<void*>(parts.distance)})
    add_columns(&scan, used);
  describe_columns(scan, &data);
  return make_join_scan(custom->flags, tlist, left, right, scan, data, parts);
}

const CustomPathMethods kPathMethods = {kCustomScanName, plan_path, nullptr};

/// The inner rows in the order of the keys that decide among equal distances.
Path* sorted_rows(PlannerInfo* root, RelOptInfo* inner, List* keys) {
  Path* const rows = inner->cheapest_total_path;
  if (keys == NIL) return rows;
  List* const order = make_pathkeys_for_sortclauses(root, keys, root->processed_tlist);
  if (pathkeys_contained_in(order, rows->pathkeys)) return rows;
  return reinterpret_cast<Path*>(create_sort_path(root, inner, rows, order, -1));
}

/// The join's clauses that are among the conditions.
List* infos_of(const List* conditions, const List* clauses) {
  List* infos = NIL;
  ListCell* cell;
  foreach (cell, clauses)
    if (list_member(conditions, lfirst_node(RestrictInfo, cell)->clause))
      infos = lappend(infos, lfirst(cell));
  return infos;
}

/// IsOfBothRows, of RankedClause.
bool is_of_both_rows(const RestrictInfo* info, const void* clause) {
  return bms_membership(info->clause_relids) == BMS_MULTIPLE &&
         info->clause != static_cast<const RankedClause*>(clause)->radius.condition;
}

}  // namespace

void add_ranked_path(PlannerInfo* root, RelOptInfo* join, RelOptInfo* outer, RelOptInfo* inner,
                     JoinType type, const JoinPathExtraData* extra) {
  Path* const left = outer->cheapest_total_path;
  if (type != JOIN_INNER || !bms_is_empty(join->lateral_relids) || left == nullptr ||
      inner->cheapest_total_path == nullptr || PATH_REQ_OUTER(left) != nullptr ||
      PATH_REQ_OUTER(inner->cheapest_total_path) != nullptr)
    return;
  RankedClause clause;
  if (!match_ranks(root, join, outer, inner, extra->restrictlist, &clause)) return;
  List* const others = infos_of(clause.conditions, extra->restrictlist);
  if (!prefers_node() && look_few_up(inner->cheapest_parameterized_paths, is_of_both_rows, &clause))
    return;
  Path* const right = sorted_rows(root, inner, clause.keys);
  RankedPath* const path = reinterpret_cast<RankedPath*>(newNode(sizeof(RankedPath), T_CustomPath));
  path->clause = clause;
  CustomPath* const custom = &path->custom;
  custom->path.pathtype = T_CustomScan;
  custom->path.parent = join;
  custom->path.pathtarget = join->reltarget;
  custom->flags = CUSTOMPATH_SUPPORT_PROJECTION;
  custom->custom_paths = list_make2(left, right);
  custom->methods = &kPathMethods;
  const NearestCost cost = {left,
                            right,
                            static_cast<double>(clause.rows),
                            clauselist_selectivity(root, others, 0, JOIN_INNER, nullptr),
                            clause.conditions,
                            1};
  if (!set_nearest_cost(root, root, clause.distance, clause.distance.right, cost, &custom->path))
    return;
  // Not all of the join's rows come.
  const double rows = clamp_row_est(
      fmin(join->rows, left->rows * fmin(static_cast<double>(clause.rows), right->rows)));
  custom->path.total_cost -= custom->path.pathtarget->cost.per_tuple * (custom->path.rows - rows);
  custom->path.rows = rows;
  add_disabled_nodes(&custom->path, {left, right});
  if (prefers_node()) prefer(&custom->path);
  add_path(join, &custom->path);
}

}  // namespace gpujoin
