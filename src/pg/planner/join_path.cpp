// Planning of the node over two inputs: which joins it can do, at what cost, and the plan of one.
#include "pg/planner/join_path.h"

#include "pg/planner/conditions.h"
#include "pg/planner/join_conditions.h"
#include "pg/planner/join_estimate.h"
#include "pg/planner/join_selectivity.h"
#include "pg/planner/nearest_path.h"
#include "pg/planner/nested_loops.h"
#include "pg/planner/planning.h"
#include "pg/planner/ranked_path.h"
#include "pg/planner/safe_expression.h"
#include "pg/planner/scan_columns.h"
#include "pg/planner/score_clause.h"
#include "pg/planner/sum_clause.h"
#include "pg/settings.h"
#include "pg/types/column_tests.h"
#include "pg/types/product_test.h"

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
#include "optimizer/tlist.h"
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

/// Whether the foreign server that has both inputs does the join: its wrapper was asked before the
/// hook is, knows which conditions it can send, and has a path that PostgreSQL's others do not
/// beat.
bool is_shipped(const RelOptInfo* join) {
  ListCell* cell;
  foreach (cell, join->pathlist)
    if (IsA(lfirst(cell), ForeignPath)) return true;
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

/// Whether all of these are, and among the conditions.
bool are_join_conditions(const List* infos, JoinType type, Relids relids, const List* conditions) {
  ListCell* cell;
  foreach (cell, infos) {
    const RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
    if (!list_member_ptr(conditions, info) || !is_join_condition(info, type, relids, conditions))
      return false;
  }
  return true;
}

/// The share of pairs for which other conditions are evaluated where this one is the engine's. A
/// value that is made of a NULL may raise an error, and then its row meets all others.
double share_left(PlannerInfo* root, const RestrictInfo* info, const SimilarityClause& clause) {
  double share = share_of_pairs(root, info->clause, clause).share;
  for (Expr* const operand : {clause.left, clause.right})
    if (!cannot_raise(root, operand)) share += share_of_nulls(root, operand);
  return share;
}

/// Why the join cannot select pairs by this condition, which is put in the order of its sides.
Refusal refusal_of(PlannerInfo* root, const RestrictInfo* info, JoinType type,
                   const RelOptInfo* join, const RelOptInfo* outer, const RelOptInfo* inner,
                   const List* conditions, SimilarityClause* clause) {
  if (!is_join_condition(info, type, join->relids, conditions) ||
      !are_join_conditions(clause->with, type, join->relids, conditions))
    return Refusal::kSecurity;
  const Relids left = outer->relids, right = inner->relids;
  const SimilarityClause unbound = *clause;
  if (!bind_to_sides(root, left, right, clause))
    return are_of_sides(root, left, right, unbound) ? Refusal::kRadius : Refusal::kSides;
  return can_have_operands(root, *clause, type, conditions) ? Refusal::kNone : Refusal::kOperands;
}

/// The similarity that the engine is to decide, or with `bands` the band of one column: the one
/// that leaves the fewest pairs, or among equals one that it decides alone. The others are
/// evaluated for these pairs. Null when no condition will do.
const RestrictInfo* choose_among(PlannerInfo* root, List* conditions, JoinType type,
                                 const RelOptInfo* join, const RelOptInfo* outer,
                                 const RelOptInfo* inner, bool bands, SimilarityClause* chosen) {
  const RestrictInfo* found = nullptr;
  ListCell* cell;
  foreach (cell, conditions) {
    const RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
    SimilarityClause clause;
    if (!find_condition(root, join, info, &clause) || is_of_one_column(clause.test) != bands)
      continue;
    const Refusal refusal = refusal_of(root, info, type, join, outer, inner, conditions, &clause);
    if (refusal != Refusal::kNone) {
      note_refusal(root, info, refusal);
      continue;
    }
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

/// Whether other conditions are keys of the index that PostgreSQL's hash and merge joins lack.
bool has_bands(PlannerInfo* root, const SimilarityClause& clause, const List* conditions,
               const RelOptInfo* outer, const RelOptInfo* inner) {
  const List* const keys = match_keys(root, clause, conditions, outer->relids, inner->relids);
  ListCell* cell;
  foreach (cell, keys)
    if (static_cast<KeyClause*>(lfirst(cell))->plan.numbers != KeyNumbers::kRanks) return true;
  return false;
}

/// The condition that the engine is to decide: a similarity, or where there is none one of several
/// bands of columns, of which the others are keys.
const RestrictInfo* choose_clause(PlannerInfo* root, List* conditions, JoinType type,
                                  const RelOptInfo* join, const RelOptInfo* outer,
                                  const RelOptInfo* inner, SimilarityClause* chosen) {
  const RestrictInfo* const similarity =
      choose_among(root, conditions, type, join, outer, inner, false, chosen);
  if (similarity != nullptr || list_length(conditions) < 2) return similarity;
  const RestrictInfo* const band =
      choose_among(root, conditions, type, join, outer, inner, true, chosen);
  return band != nullptr && has_bands(root, *chosen, conditions, outer, inner) ? band : nullptr;
}

/// A path with the description of its join. The planner never copies paths, so one may be larger
/// than CustomPath.
struct JoinPath {
  CustomPath custom;  // first: PostgreSQL knows no more than this
  SimilarityClause clause;
  JoinType type;
  const RelOptInfo* join;
  Relids joined;       ///< relations of the join
  List* conditions;    ///< of RestrictInfo
  bool has_keys;       ///< some of them are keys of the index
  bool names_matches;  ///< as in JoinPlanData
  bool counts;         ///< as in JoinPlanData
  bool grouped;
  List* having;
  TopPlan top;        ///< as in JoinPlanData, but for the attributes
  ScoreClause score;  ///< of its pairs
  Expr* order;        ///< the score as the query has it
  SumsOfJoin sums;
  SumsRefusal sums_refusal;  ///< why pairs are not added up
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

/// The right input becomes the left one.
void swap_inputs(JoinPath* path) {
  List* const inputs = path->custom.custom_paths;
  path->custom.custom_paths = list_make2(lsecond(inputs), linitial(inputs));
  std::swap(path->clause.left, path->clause.right);
  std::swap(path->clause.radii[0], path->clause.radii[1]);
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

/// The columns that groups and aggregates are computed of.
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

/// The aggregate whose state the column is.
const SumClause& sum_of_column(const SumsOfJoin& wanted, const Expr* column) {
  ListCell* cell;
  foreach (cell, wanted.sums) {
    const SumClause* const sum = static_cast<SumClause*>(lfirst(cell));
    const Aggref* const shown = wanted.finishes ? sum->aggregate : partial_of(sum->aggregate);
    if (equal(shown, column)) return *sum;
  }
  elog(ERROR, "an aggregate of a similarity join is missing");
}

/// The columns of a GROUP BY or DISTINCT.
void describe_groups(const List* clauses, const List* groups, JoinPlanData* data) {
  data->group_columns = list_length(clauses);
  data->group_operators = static_cast<Oid*>(palloc(sizeof(Oid) * (data->group_columns + 1)));
  data->group_collations = static_cast<Oid*>(palloc(sizeof(Oid) * (data->group_columns + 1)));
  for (int i = 0; i < data->group_columns; ++i) {
    data->group_operators[i] = list_nth_node(SortGroupClause, clauses, i)->eqop;
    data->group_collations[i] = exprCollation(static_cast<Node*>(list_nth(groups, i)));
  }
}

/// What is to be added up, in the order of the columns.
void describe_sums(const PlannerInfo* root, const SumsOfJoin& wanted, const ScanColumns& scan,
                   JoinPlanData* data, JoinPlanExpressions* parts) {
  if (!are_wanted(wanted)) return;
  data->finishes_sums = wanted.finishes;
  data->sums = static_cast<SumPlan*>(palloc0(sizeof(SumPlan) * list_length(scan.columns)));
  for (int i = 0; i < data->column_count; ++i) {
    if (data->attributes[i] != 0) continue;
    const SumClause& sum = sum_of_column(wanted, list_nth_node(TargetEntry, scan.columns, i)->expr);
    data->sums[data->sum_count++] = sum.plan;
    parts->sums = lappend(parts->sums, encode_sum(sum.expressions));
  }
  describe_groups(wanted.clauses, wanted.groups, data);
  ListCell* cell;
  foreach (cell, wanted.groups)
    data->groups_may_raise =
        data->groups_may_raise || !cannot_raise(root, static_cast<Expr*>(lfirst(cell)));
  parts->groups = wanted.groups;
}

/// The keys of the join's index, of KeyClause.
List* keys_of(PlannerInfo* root, const JoinPath& path) {
  if (!path.has_keys) return NIL;
  List* conditions = NIL;
  ListCell* cell;
  foreach (cell, path.conditions)
    if (!IS_OUTER_JOIN(path.type) ||
        !RINFO_IS_PUSHED_DOWN(lfirst_node(RestrictInfo, cell), path.joined))
      conditions = lappend(conditions, lfirst(cell));
  return match_keys(root, path.clause, conditions, relids_of(linitial(path.custom.custom_paths)),
                    relids_of(lsecond(path.custom.custom_paths)));
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

/// What can be done about errors of the conditions of an input that is a scan of a table. Whoever
/// reads the table may evaluate them for rows in any order.
ErrorTrap filter_trap(const PlannerInfo* root, const Plan* input) {
  if (IsA(input, Gather)) input = outerPlan(input);
  Expr* const conditions = reinterpret_cast<Expr*>(input->qual);
  if (cannot_raise(root, conditions)) return ErrorTrap::kNone;
  return can_drop_errors(root, conditions) ? ErrorTrap::kCatch : ErrorTrap::kSubtransaction;
}

/// CustomPathMethods::PlanCustomPath.
Plan* plan_path(PlannerInfo* root, RelOptInfo*, CustomPath* path, List* tlist, List*,
                List* inputs) {
  const JoinPath& planned = *as_join_path(path);
  note_served(root, planned.join);
  const SimilarityClause& clause = planned.clause;
  Conditions conditions = sort_conditions(root, clause, planned.type, planned.conditions,
                                          planned.joined, relids_of(linitial(path->custom_paths)),
                                          relids_of(lsecond(path->custom_paths)));
  JoinPlanExpressions& parts = conditions.parts;
  if (planned.counts) parts.where = planned.having;
  if (planned.sums.finishes) parts.where = planned.sums.having;
  Plan *left = static_cast<Plan*>(linitial(inputs)), *right = static_cast<Plan*>(lsecond(inputs));
  JoinPlanData data = {};
  data.join_type = planned.type;
  data.test = clause.test;
  data.names_matches = planned.names_matches;
  data.counts = planned.counts;
  data.grouped = planned.grouped;
  data.top = planned.top;
  data.sums_refusal = planned.sums_refusal;
  set_radius(root, clause.eps, &data, &parts);
  const bool for_all_rows = computes_all_operands(root, planned.type, planned.conditions);
  data.left_value =
      place_operand(root, &left, clause.left, for_all_rows, &parts.left_operand, &data.left_trap);
  data.right_value = place_operand(root, &right, clause.right, for_all_rows, &parts.right_operand,
                                   &data.right_trap);
  data.left_filter = filter_trap(root, left);
  data.right_filter = filter_trap(root, right);
  if (clause.radii[0] != nullptr) data.left_radius = place_value(&left, clause.radii[0]);
  if (clause.radii[1] != nullptr) data.right_radius = place_value(&right, clause.radii[1]);
  data.rounds_radii = clause.rounds_radii;
  data.boxes = conditions.boxes;
  if (planned.score.left != nullptr) {
    data.top.left_score = place_value(&left, planned.score.left);
    data.top.right_score = place_value(&right, planned.score.right);
  }
  ScanColumns scan = {NIL, NIL, NIL, left->targetlist, right->targetlist, NIL};
  // First the columns of the target list, in its order, so that rows need no projection.
  add_columns(&scan, tlist);
  add_columns(&scan, path->path.pathtarget->exprs);
  add_columns(&scan, parts.where);
  add_columns(&scan, conditions.all);
  add_columns(&scan, planned.order);
  add_sum_columns(&scan, planned.sums);
  if (data.left_value > 0) add_operand(&scan, clause.left, true, data.left_value);
  if (data.right_value > 0 && !becomes_known(planned.type, clause.right))
    add_operand(&scan, clause.right, false, data.right_value);
  describe_columns(scan, &data);
  describe_sums(root, planned.sums, scan, &data, &parts);
  if (planned.grouped)
    describe_groups(group_clauses(root),
                    get_sortgrouplist_exprs(group_clauses(root), root->processed_tlist), &data);
  describe_keys(keys_of(root, planned), &data, &parts);
  if (conditions.order != KeyOrder::kNone)
    data.order = {conditions.order, conditions.keys[0]->vartype,
                  column_of(scan.columns, conditions.keys[0]),
                  column_of(scan.columns, conditions.keys[1])};
  parts.score = planned.order;

  return make_join_scan(path->flags, tlist, left, right, scan, data, parts);
}

const CustomPathMethods kPathMethods = {kCustomScanName, plan_path, nullptr};

/// What the keys of a join's index leave.
struct KeysLeft {
  int conditions;     ///< that they stand for
  Selectivity share;  ///< of the pairs within the radius
  Cost cost;
};

/// Decides whether the path has keys. They pay if the distance alone leaves more pairs than rows.
/// They also pay if the engine compares more pairs than rows and keys leave few of these pairs. An
/// engine compares faster without keys.
KeysLeft weigh_keys(PlannerInfo* root, JoinPath* path, Selectivity share, Selectivity compared,
                    SpecialJoinInfo* join) {
  constexpr double kPairsPerRow = 2;
  constexpr double kKeyOperators = 20;  // for each row
  constexpr double kFewCompared = 0.125;
  KeysLeft left = {0, 1, 0};
  const Path* const outer = static_cast<Path*>(linitial(path->custom.custom_paths));
  const Path* const inner = static_cast<Path*>(lsecond(path->custom.custom_paths));
  const double rows = outer->rows + inner->rows, pairs = outer->rows * inner->rows;
  const SimilarityTest& test = path->clause.test;
  path->has_keys = !tests_boxes(test) && !is_product(test) && !is_of_bits(*test.type) &&
                   list_length(path->conditions) > 1 && pairs * compared > kPairsPerRow * rows;
  const List* const keys = keys_of(root, *path);
  ListCell* cell;
  foreach (cell, keys != NIL ? path->conditions : NIL) {
    RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
    if (!is_of_key(keys, info->clause)) continue;
    ++left.conditions;
    left.share *= clause_selectivity(root, reinterpret_cast<Node*>(info), 0, JOIN_INNER, join);
  }
  path->has_keys =
      keys != NIL && (pairs * share > kPairsPerRow * rows || left.share <= kFewCompared);
  if (!path->has_keys) return {0, 1, 0};
  left.cost = cpu_operator_cost * kKeyOperators * rows * list_length(keys);
  return left;
}

/// The share of all pairs that meet all conditions of a join, of which this one leaves `share`.
Selectivity share_of_matches(PlannerInfo* root, const JoinPathExtraData& join,
                             const RestrictInfo* info, Selectivity share) {
  ListCell* cell;
  foreach (cell, join.restrictlist)
    if (lfirst(cell) != info)
      share *=
          clause_selectivity(root, static_cast<Node*>(lfirst(cell)), 0, JOIN_INNER, join.sjinfo);
  return share;
}

/// Notes why a join does not serve any of its conditions.
void note_refusals(PlannerInfo* root, const List* conditions, Refusal refusal) {
  ListCell* cell;
  foreach (cell, conditions) note_refusal(root, lfirst_node(RestrictInfo, cell), refusal);
}

/// set_join_pathlist_hook: offers the node beside PostgreSQL's own ways to join.
void add_join_path(PlannerInfo* root, RelOptInfo* join, RelOptInfo* outer, RelOptInfo* inner,
                   JoinType type, JoinPathExtraData* extra) {
  if (previous_join_hook != nullptr) previous_join_hook(root, join, outer, inner, type, extra);
  if (!customscan_enabled()) return;
  if (!is_join_kind_served(type)) {
    if (type == JOIN_FULL) note_refusals(root, extra->restrictlist, Refusal::kJoinKind);
    return;
  }
  const bool is_lateral = !bms_is_empty(inner->lateral_relids);
  if (!is_lateral && !may_rank(root) && conditions_of(root) == NIL) return;
  if (names_partitions(join)) return;
  if (is_lateral) return add_nearest_path(root, join, outer, inner, type, extra);
  add_ranked_path(root, join, outer, inner, type, extra);
  Path *left = outer->cheapest_total_path, *right = inner->cheapest_total_path;
  if (!bms_is_empty(join->lateral_relids) || left == nullptr || right == nullptr ||
      PATH_REQ_OUTER(left) != nullptr || PATH_REQ_OUTER(right) != nullptr)
    return;
  SimilarityClause clause;
  Cost of_values;
  const RestrictInfo* const info =
      choose_clause(root, extra->restrictlist, type, join, outer, inner, &clause);
  if (info == nullptr) return;
  if (is_shipped(join)) return note_refusal(root, info, Refusal::kForeign);
  if (!has_memory(root, left, right, clause, &of_values))
    return note_refusal(root, info, Refusal::kMemory);
  JoinPath* const join_path = new_join_path();
  join_path->clause = clause;
  join_path->type = type;
  join_path->join = join;
  join_path->joined = join->relids;
  join_path->conditions = extra->restrictlist;
  join_path->names_matches = type == JOIN_SEMI && names_matches(root, join, inner);
  CustomPath* const path = &join_path->custom;
  path->path.pathtype = T_CustomScan;
  path->path.parent = join;
  path->path.pathtarget = join->reltarget;
  path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
  path->custom_paths = list_make2(left, right);
  path->methods = &kPathMethods;
  const PairShare pairs = share_of_pairs(root, info->clause, clause);
  const Selectivity share = pairs.share;
  const Selectivity found = share_of_candidates(root, clause, pairs).share;
  if (!prefers_node() && found < 0 &&
      (has_lookups(outer, inner, info) || has_lookups(inner, outer, info)))
    return note_refusal(root, info, Refusal::kFewRows);
  const Selectivity compared = compared_share(root, right, clause, fmax(found, share));
  const KeysLeft keys = weigh_keys(root, join_path, fmax(found, share), compared, extra->sjinfo);
  const bool asked = list_length(extra->restrictlist) > 1 + keys.conditions ||
                     (tests_boxes(clause.test) && !is_exact(clause.test)) || clause.test.open;
  const Cost detoasting =
      detoasting_cost(root, left, clause.left) + detoasting_cost(root, right, clause.right);
  const double in_vain = left->rows * right->rows * keys.share * (compared - fmax(found, share));
  of_values += keys.cost + detoasting + comparing_cost(root, clause, in_vain);
  set_join_cost(root, &path->path, left, right, fmax(found, share) * keys.share, type,
                extra->restrictlist, asked, of_values);
  add_disabled_nodes(&path->path, {left, right});
  if (prefers_node()) {
    prefer(&path->path);
    return add_path(join, &path->path);
  }
  if (are_lookups_cheaper(root, &path->path, outer, inner, info, share) ||
      (type == JOIN_INNER && are_lookups_cheaper(root, &path->path, inner, outer, info, share)) ||
      ((type == JOIN_SEMI || type == JOIN_ANTI) && asked &&
       are_first_matches_cheaper(root, &path->path, left, right, extra->restrictlist,
                                 share_of_matches(root, *extra, info, share))))
    return note_refusal(root, info, Refusal::kFewRows);
  note_refusal(root, info, Refusal::kCost);
  drop_risky_loops(root, &path->path, pairs.is_seen ? left->rows * right->rows * share : 0,
                   path->path.total_cost - detoasting);
  add_path(join, &path->path);
}

/// set_rel_pathlist_hook: has conditions estimated before anything is joined.
void estimate_conditions(PlannerInfo* root, RelOptInfo* rel, Index rti, RangeTblEntry* entry) {
  if (previous_rel_hook != nullptr) previous_rel_hook(root, rel, rti, entry);
  if (rel->reloptkind != RELOPT_BASEREL) return;
  if (customscan_enabled())
    conditions_of(root);
  else
    planning_of(root);  // gpu_why() tells of it
}

}  // namespace

namespace {

CustomPath* find_join(const RelOptInfo* relation, bool inner_only) {
  CustomPath* found = nullptr;
  ListCell* cell;
  foreach (cell, relation->pathlist) {
    Path* candidate = static_cast<Path*>(lfirst(cell));
    while (IsA(candidate, ProjectionPath))
      candidate = reinterpret_cast<ProjectionPath*>(candidate)->subpath;
    CustomPath* const path = reinterpret_cast<CustomPath*>(candidate);
    if (!IsA(path, CustomPath) || path->methods != &kPathMethods) continue;
    const JoinPath& join = *as_join_path(path);
    if ((inner_only && join.type != JOIN_INNER) || join.counts || join.names_matches ||
        are_wanted(join.sums))
      continue;
    if (found == nullptr || path->path.total_cost < found->path.total_cost) found = path;
  }
  return found;
}

}  // namespace

CustomPath* find_inner_join(const RelOptInfo* relation) { return find_join(relation, true); }

CustomPath* find_any_join(const RelOptInfo* relation) { return find_join(relation, false); }

Relids left_relids(const CustomPath* join) { return relids_of(linitial(join->custom_paths)); }
Relids right_relids(const CustomPath* join) { return relids_of(lsecond(join->custom_paths)); }
const SimilarityClause& clause_of(const CustomPath* join) { return as_join_path(join)->clause; }
JoinType type_of(const CustomPath* join) { return as_join_path(join)->type; }

bool can_count(PlannerInfo* root, const CustomPath* join) {
  const JoinPath& path = *as_join_path(join);
  return can_be_counted(path.clause, path.conditions, keys_of(root, path),
                        relids_of(linitial(join->custom_paths)),
                        relids_of(lsecond(join->custom_paths)));
}

bool can_add_up(PlannerInfo* root, const CustomPath* join) {
  const JoinPath& path = *as_join_path(join);
  if (path.type == JOIN_INNER || path.type == JOIN_LEFT) return can_count(root, join);
  ListCell* cell;
  foreach (cell, path.conditions)
    if (IS_OUTER_JOIN(path.type) &&
        RINFO_IS_PUSHED_DOWN(lfirst_node(RestrictInfo, cell), path.joined))
      return false;  // it is about rows of the join
  return true;
}

CustomPath* make_counting_path(const CustomPath* join, bool grouped, const RelOptInfo* group,
                               List* having) {
  JoinPath* const path = copy_path(join);
  path->counts = true;
  path->grouped = grouped;
  path->having = having;
  const Path* const right = static_cast<Path*>(lsecond(join->custom_paths));
  if (grouped && right->parent == group) swap_inputs(path);
  return &path->custom;
}

CustomPath* make_sum_path(PlannerInfo*, const CustomPath* join, const SumsOfJoin& sums) {
  JoinPath* const path = copy_path(join);
  path->sums = sums;
  if (sums.swapped) swap_inputs(path);
  return &path->custom;
}

void offer_without_pairs(const PlannerInfo* root, RelOptInfo* output, Path* path) {
  const bool wants_order =
      root->sort_pathkeys != NIL || root->distinct_pathkeys != NIL || root->window_pathkeys != NIL;
  ListCell* cell;
  foreach (cell, output->pathlist) {
    const Path* const other = static_cast<Path*>(lfirst(cell));
    const bool may_be_wanted = wants_order && other->pathkeys != NIL;
    if (!may_be_wanted && path->total_cost <= other->total_cost && !is_disabled(path))
      output->pathlist = foreach_delete_current(output->pathlist, cell);
  }
  output->pathlist = lappend(output->pathlist, path);
}

void refuse_sums(CustomPath* join, SumsRefusal reason) {
  reinterpret_cast<JoinPath*>(join)->sums_refusal = reason;
}

CustomPath* make_top_path(PlannerInfo* root, const CustomPath* join, Expr* score,
                          const TopPlan& top) {
  const SimilarityClause& clause = as_join_path(join)->clause;
  ScoreClause found;
  if (tests_boxes(clause.test) || has_row_radii(clause) || clause.test.open ||
      !match_score(root, score, clause, relids_of(linitial(join->custom_paths)),
                   relids_of(lsecond(join->custom_paths)), &found) ||
      (found.function == ScoreFunction::kDistance && !top.lowest_first))
    return nullptr;
  JoinPath* const path = copy_path(join);
  path->has_keys = false;  // of joins whose pairs are all wanted
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
