// Planning of the node over two inputs: which joins it can do, at what cost, and the plan of one.
#include "pg/planner/join_path.h"

#include "pg/planner/join_conditions.h"
#include "pg/planner/join_estimate.h"
#include "pg/planner/join_selectivity.h"
#include "pg/planner/nested_loops.h"
#include "pg/planner/safe_expression.h"
#include "pg/planner/scan_columns.h"
#include "pg/planner/score_clause.h"
#include "pg/settings.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
}

namespace gpujoin {
namespace {

set_join_pathlist_hook_type previous_join_hook = nullptr;
set_rel_pathlist_hook_type previous_rel_hook = nullptr;

/// Whether rows of the join name rows of a partitioned table that the statement changes. PostgreSQL
/// gives them their partitions' names later, in plans of its own alone.
bool names_partitions(const RelOptInfo* join) {
  ListCell* cell;
  foreach (cell, join->reltarget->exprs) {
    const Var* const column = static_cast<const Var*>(lfirst(cell));
    if (IsA(column, Var) && static_cast<int>(column->varno) == ROWID_VAR) return true;
  }
  return false;
}

/// Whether rows of a semijoin have columns of their match: the ones by which it is locked, or found
/// again after waiting for a lock.
bool names_matches(PlannerInfo* root, const RelOptInfo* join, const RelOptInfo* inner) {
  ListCell* cell;
  foreach (cell, join->reltarget->exprs)
    if (bms_overlap(pull_varnos(root, static_cast<Node*>(lfirst(cell))), inner->relids))
      return true;
  return false;
}

bool is_join_kind_served(JoinType type) {
  return type == JOIN_INNER || type == JOIN_LEFT || type == JOIN_SEMI || type == JOIN_ANTI;
}

/// Whether the condition decides which rows pair, and none of lower security has to come first.
bool is_join_condition(const RestrictInfo* info, JoinType type, Relids relids,
                       const List* conditions) {
  if (IS_OUTER_JOIN(type) && RINFO_IS_PUSHED_DOWN(info, relids)) return false;
  ListCell* cell;
  foreach (cell, conditions) {
    const RestrictInfo* const other = lfirst_node(RestrictInfo, cell);
    if (other->pseudoconstant) return false;  // no node of ours evaluates it once
    if (other->security_level < info->security_level) return false;
  }
  return true;
}

/// The share of pairs for which other conditions are evaluated where this one is the engine's. A
/// value that is made of a NULL may raise an error, and then its row meets all others.
double share_left(PlannerInfo* root, const RestrictInfo* info, const SimilarityClause& clause) {
  double share = share_of_pairs(root, info, clause);
  for (Expr* const operand : {clause.left, clause.right})
    if (!cannot_raise(root, operand)) share += share_of_nulls(root, operand);
  return share;
}

/// The condition that the engine is to decide: the one that leaves the fewest pairs, or among
/// equals one that it decides alone. The others are evaluated for these pairs. Null when no
/// condition will do.
const RestrictInfo* choose_clause(PlannerInfo* root, List* conditions, JoinType type,
                                  const RelOptInfo* join, const RelOptInfo* outer,
                                  const RelOptInfo* inner, SimilarityClause* chosen) {
  const RestrictInfo* found = nullptr;
  ListCell* cell;
  foreach (cell, conditions) {
    const RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
    SimilarityClause clause;
    if (!is_join_condition(info, type, join->relids, conditions) ||
        !match_similarity(root, info->clause, outer->relids, inner->relids, &clause) ||
        !can_have_operands(root, clause, type, conditions))
      continue;
    if (found != nullptr) {
      const double least = share_left(root, found, *chosen), share = share_left(root, info, clause);
      const bool decides_more = is_exact(clause.test) && !is_exact(chosen->test);
      if (share > least || (share == least && !decides_more)) continue;
    }
    *chosen = clause;
    found = info;
  }
  return found;
}

/// A path with the description of its join. The planner never copies paths, so one may be larger
/// than CustomPath.
struct JoinPath {
  CustomPath custom;  // first: PostgreSQL knows no more than this
  SimilarityClause clause;
  JoinType type;
  List* conditions;    ///< of RestrictInfo
  bool names_matches;  ///< as in JoinPlanData
  bool counts;         ///< as in JoinPlanData
  bool grouped;
  List* having;
  TopPlan top;        ///< as in JoinPlanData, but for the attributes
  ScoreClause score;  ///< of its pairs
  Expr* order;        ///< the score as the query has it
};

const JoinPath* as_join_path(const CustomPath* path) {
  return reinterpret_cast<const JoinPath*>(path);
}

JoinPath* new_join_path() {
  return reinterpret_cast<JoinPath*>(newNode(sizeof(JoinPath), T_CustomPath));
}

JoinPath* copy_path(const CustomPath* join) {
  JoinPath* const copy = new_join_path();
  *copy = *as_join_path(join);
  return copy;
}

Relids relids_of(const void* path) { return static_cast<const Path*>(path)->parent->relids; }

/// The place of a key among the columns, from 0.
int column_of(const List* columns, const Var* key) {
  ListCell* cell;
  foreach (cell, columns) {
    const Var* const column = reinterpret_cast<const Var*>(lfirst_node(TargetEntry, cell)->expr);
    if (IsA(column, Var) && column->varno == key->varno && column->varattno == key->varattno)
      return foreach_current_index(cell);
  }
  elog(ERROR, "a key of a similarity join is missing");
}

/// Whether an operand has a value in rows of an outer join that miss its side, where its columns
/// are NULL. The value that the side has computed is no longer it.
bool becomes_known(JoinType type, Expr* right_operand) {
  return IS_OUTER_JOIN(type) && contain_nonstrict_functions(reinterpret_cast<Node*>(right_operand));
}

void describe_columns(const ScanColumns& scan, JoinPlanData* data) {
  data->column_count = list_length(scan.columns);
  data->from_left = static_cast<bool*>(palloc(data->column_count + 1));
  data->attributes =
      static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (data->column_count + 1)));
  for (int i = 0; i < data->column_count; ++i) {
    data->from_left[i] = list_nth_int(scan.from_left, i) != 0;
    data->attributes[i] = static_cast<AttrNumber>(list_nth_int(scan.attributes, i));
  }
}

/// CustomPathMethods::PlanCustomPath.
Plan* plan_path(PlannerInfo* root, RelOptInfo* rel, CustomPath* path, List* tlist, List*,
                List* inputs) {
  const JoinPath& planned = *as_join_path(path);
  const SimilarityClause& clause = planned.clause;
  Conditions conditions = sort_conditions(root, clause, planned.type, planned.conditions,
                                          rel->relids, relids_of(linitial(path->custom_paths)),
                                          relids_of(lsecond(path->custom_paths)));
  JoinPlanExpressions& parts = conditions.parts;
  if (planned.counts) parts.where = planned.having;
  Plan *left = static_cast<Plan*>(linitial(inputs)), *right = static_cast<Plan*>(lsecond(inputs));
  JoinPlanData data = {};
  data.join_type = planned.type;
  data.test = clause.test;
  data.names_matches = planned.names_matches;
  data.counts = planned.counts;
  data.grouped = planned.grouped;
  data.top = planned.top;
  data.eps_may_raise = !cannot_raise(root, clause.eps);
  const bool for_all_rows = computes_all_operands(root, planned.type, planned.conditions);
  data.left_value =
      place_operand(root, &left, clause.left, for_all_rows, &parts.left_operand, &data.left_trap);
  data.right_value = place_operand(root, &right, clause.right, for_all_rows, &parts.right_operand,
                                   &data.right_trap);
  if (planned.score.left != nullptr) {
    data.top.left_score = place_value(&left, planned.score.left);
    data.top.right_score = place_value(&right, planned.score.right);
  }
  ScanColumns scan = {NIL, NIL, NIL, left->targetlist, right->targetlist};
  // First the columns of the target list, in its order, so that rows need no projection.
  add_columns(&scan, tlist);
  add_columns(&scan, path->path.pathtarget->exprs);
  add_columns(&scan, parts.where);
  add_columns(&scan, conditions.all);
  add_columns(&scan, planned.order);
  if (data.left_value > 0) add_operand(&scan, clause.left, true, data.left_value);
  if (data.right_value > 0 && !becomes_known(planned.type, clause.right))
    add_operand(&scan, clause.right, false, data.right_value);
  describe_columns(scan, &data);
  if (conditions.order != KeyOrder::kNone)
    data.order = {conditions.order, conditions.keys[0]->vartype,
                  column_of(scan.columns, conditions.keys[0]),
                  column_of(scan.columns, conditions.keys[1])};
  parts.eps = clause.eps;
  parts.score = planned.order;

  CustomScan* const plan = makeNode(CustomScan);
  plan->scan.plan.targetlist = tlist;
  plan->flags = path->flags;
  plan->methods = &kCustomScanMethods;
  plan->custom_plans = list_make2(left, right);
  plan->custom_scan_tlist = scan.columns;
  plan->custom_exprs =
      static_cast<List*>(with_columns_of(scan.columns, encode_join_expressions(parts)));
  plan->custom_private = encode_join_plan(data);
  return &plan->scan.plan;
}

const CustomPathMethods kPathMethods = {kCustomScanName, plan_path, nullptr};

/// set_join_pathlist_hook: offers the node beside PostgreSQL's own ways to join.
void add_join_path(PlannerInfo* root, RelOptInfo* join, RelOptInfo* outer, RelOptInfo* inner,
                   JoinType type, JoinPathExtraData* extra) {
  if (previous_join_hook != nullptr) previous_join_hook(root, join, outer, inner, type, extra);
  if (!customscan_enabled() || !is_join_kind_served(type) || names_partitions(join)) return;
  Path *left = outer->cheapest_total_path, *right = inner->cheapest_total_path;
  if (!bms_is_empty(join->lateral_relids) || left == nullptr || right == nullptr ||
      PATH_REQ_OUTER(left) != nullptr || PATH_REQ_OUTER(right) != nullptr)
    return;
  SimilarityClause clause;
  Cost of_values;
  const RestrictInfo* const info =
      choose_clause(root, extra->restrictlist, type, join, outer, inner, &clause);
  if (info == nullptr || !has_memory(root, left, right, clause, &of_values)) return;
  JoinPath* const join_path = new_join_path();
  join_path->clause = clause;
  join_path->type = type;
  join_path->conditions = extra->restrictlist;
  join_path->names_matches = type == JOIN_SEMI && names_matches(root, join, inner);
  CustomPath* const path = &join_path->custom;
  path->path.pathtype = T_CustomScan;
  path->path.parent = join;
  path->path.pathtarget = join->reltarget;
  path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
  path->custom_paths = list_make2(left, right);
  path->methods = &kPathMethods;
  const Selectivity share = share_of_pairs(root, info, clause);
  const bool asked =
      list_length(extra->restrictlist) > 1 || (tests_boxes(clause.test) && !is_exact(clause.test));
  set_join_cost(root, &path->path, left, right, share, type, extra->restrictlist, asked, of_values);
  add_disabled_nodes(&path->path, {left, right});
  if (are_lookups_cheaper(root, &path->path, outer, inner, info, share) ||
      (type == JOIN_INNER && are_lookups_cheaper(root, &path->path, inner, outer, info, share)))
    return;
  drop_risky_loops(root, &path->path);
  add_path(join, &path->path);
}

/// set_rel_pathlist_hook: before anything is joined, sets how selective conditions are that nobody
/// else knows better. For `a <-> b <= e` the planner would otherwise assume a third, as for any
/// comparison. Children of a partitioned table have joins' conditions of their own later.
void estimate_conditions(PlannerInfo* root, RelOptInfo* rel, Index rti, RangeTblEntry* entry) {
  if (previous_rel_hook != nullptr) previous_rel_hook(root, rel, rti, entry);
  if (!customscan_enabled() || rel->reloptkind != RELOPT_BASEREL) return;
  ListCell* cell;
  foreach (cell, rel->joininfo) {
    RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
    SimilarityClause clause;
    if (info->norm_selec < 0 &&
        match_similarity(root, info->clause, rel->relids,
                         bms_difference(info->clause_relids, rel->relids), &clause))
      set_selectivities(root, info, clause);
  }
}

}  // namespace

CustomPath* find_inner_join(const RelOptInfo* relation) {
  CustomPath* found = nullptr;
  ListCell* cell;
  foreach (cell, relation->pathlist) {
    Path* candidate = static_cast<Path*>(lfirst(cell));
    while (IsA(candidate, ProjectionPath))
      candidate = reinterpret_cast<ProjectionPath*>(candidate)->subpath;
    CustomPath* const path = reinterpret_cast<CustomPath*>(candidate);
    if (!IsA(path, CustomPath) || path->methods != &kPathMethods) continue;
    const JoinPath& join = *as_join_path(path);
    if (join.type != JOIN_INNER || join.counts) continue;
    if (found == nullptr || path->path.total_cost < found->path.total_cost) found = path;
  }
  return found;
}

bool can_count(const CustomPath* join) {
  const JoinPath& path = *as_join_path(join);
  return can_be_counted(path.clause, path.conditions, relids_of(linitial(join->custom_paths)),
                        relids_of(lsecond(join->custom_paths)));
}

CustomPath* make_counting_path(const CustomPath* join, bool grouped, const RelOptInfo* group,
                               List* having) {
  JoinPath* const path = copy_path(join);
  path->counts = true;
  path->grouped = grouped;
  path->having = having;
  Path *left = static_cast<Path*>(linitial(join->custom_paths)),
       *right = static_cast<Path*>(lsecond(join->custom_paths));
  if (grouped && right->parent == group) {
    path->custom.custom_paths = list_make2(right, left);
    std::swap(path->clause.left, path->clause.right);
  }
  return &path->custom;
}

CustomPath* make_top_path(PlannerInfo* root, const CustomPath* join, Expr* score,
                          const TopPlan& top) {
  const SimilarityClause& clause = as_join_path(join)->clause;
  ScoreClause found;
  if (tests_boxes(clause.test) ||
      !match_score(root, score, clause, relids_of(linitial(join->custom_paths)),
                   relids_of(lsecond(join->custom_paths)), &found) ||
      (found.function == ScoreFunction::kDistance && !top.lowest_first))
    return nullptr;
  JoinPath* const path = copy_path(join);
  path->top = top;
  path->score = found;
  path->order = score;
  path->top.function = found.function;
  std::copy_n(found.signs, 2, path->top.signs);
  path->top.type = exprType(reinterpret_cast<Node*>(score));
  if (found.left != nullptr) {
    path->top.left_type = exprType(reinterpret_cast<Node*>(found.left));
    path->top.right_type = exprType(reinterpret_cast<Node*>(found.right));
  }
  return &path->custom;
}

void install_join_path() {
  previous_join_hook = set_join_pathlist_hook;
  set_join_pathlist_hook = add_join_path;
  previous_rel_hook = set_rel_pathlist_hook;
  set_rel_pathlist_hook = estimate_conditions;
}

}  // namespace gpujoin
