// Which joins the node over two inputs can do, and at what cost.
#include "pg/executor/custom_scan.h"
#include "pg/planner/conditions.h"
#include "pg/planner/join_conditions.h"
#include "pg/planner/join_selectivity.h"
#include "pg/planner/key_clause.h"
#include "pg/planner/nearest_path.h"
#include "pg/planner/nested_loops.h"
#include "pg/planner/pair_cost.h"
#include "pg/planner/planning.h"
#include "pg/planner/safe_expression.h"
#include "pg/settings.h"
#include "pg/types/column_tests.h"
#include "pg/types/product_test.h"

extern "C" {
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
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
  return can_have_values(root, *clause) || computes_all_operands(root, type, conditions)
             ? Refusal::kNone
             : Refusal::kOperands;
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

/// The condition that the engine is to decide: a similarity, or where there is none one of several
/// bands of columns, of which the others are keys.
const RestrictInfo* choose_clause(PlannerInfo* root, List* conditions, JoinType type,
                                  const RelOptInfo* join, const RelOptInfo* outer,
                                  const RelOptInfo* inner, SimilarityClause* chosen) {
  const RestrictInfo* const similarity =
      choose_among(root, conditions, type, join, outer, inner, false, chosen);
  return similarity != nullptr || list_length(conditions) < 2
             ? similarity
             : choose_among(root, conditions, type, join, outer, inner, true, chosen);
}

/// Returns the keys of the engine's index among the join's conditions, as a list of KeyClause*.
List* find_keys(PlannerInfo* root, const PairPath& path) {
  const SimilarityTest& test = path.clause.test;
  if (tests_boxes(test) || is_product(test) || list_length(path.conditions) < 2) return NIL;
  List* conditions = NIL;
  ListCell* cell;
  foreach (cell, path.conditions)
    if (is_of_join(path, lfirst_node(RestrictInfo, cell)))
      conditions = lappend(conditions, lfirst(cell));
  return match_keys(root, path.clause, conditions, left_relids(&path), right_relids(&path));
}

/// Returns true if a key is a band or an interval, which PostgreSQL's hash and merge joins lack.
bool has_bands(const List* keys) {
  ListCell* cell;
  foreach (cell, keys)
    if (static_cast<KeyClause*>(lfirst(cell))->plan.numbers != KeyNumbers::kRanks) return true;
  return false;
}

/// The effect of the keys of a join's index.
struct KeysLeft {
  int conditions;     ///< number of conditions that the keys replace
  Selectivity share;  ///< share of the pairs within the radius that the keys leave
  Cost cost;          ///< cost of reading the keys
};

/// Drops the path's keys if they do not pay. They pay if the distance alone leaves more pairs than
/// rows. They also pay if the engine compares more pairs than rows and keys leave few of these
/// pairs. An engine compares faster without keys.
KeysLeft weigh_keys(PlannerInfo* root, PairPath* path, Selectivity share, Selectivity compared,
                    SpecialJoinInfo* join) {
  constexpr double kPairsPerRow = 2;
  constexpr double kKeyOperators = 20;  // for each row
  constexpr double kFewCompared = 0.125;
  KeysLeft left = {0, 1, 0};
  const Path *const outer = left_input(path), *const inner = right_input(path);
  const double rows = outer->rows + inner->rows, pairs = outer->rows * inner->rows;
  ListCell* cell;
  foreach (cell, path->keys != NIL ? path->conditions : NIL) {
    RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
    if (!is_of_key(path->keys, info->clause)) continue;
    ++left.conditions;
    left.share *= clause_selectivity(root, reinterpret_cast<Node*>(info), 0, JOIN_INNER, join);
  }
  if (pairs * compared <= kPairsPerRow * rows ||
      (pairs * share <= kPairsPerRow * rows && left.share > kFewCompared))
    path->keys = NIL;
  if (path->keys == NIL) return {0, 1, 0};
  left.cost = cpu_operator_cost * kKeyOperators * rows * list_length(path->keys);
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

/// Sets the path's cost and adds it, unless the node is known to be slower. Returns the reason that
/// gpu_why() gives if the path is not chosen.
Refusal offer_pairs(PlannerInfo* root, PairPath* pairs, const RestrictInfo* info,
                    const RelOptInfo* outer, const RelOptInfo* inner,
                    const JoinPathExtraData* extra) {
  const SimilarityClause& clause = pairs->clause;
  const Path *const left = left_input(pairs), *const right = right_input(pairs);
  Path* const path = &pairs->custom.path;
  JoinWork work = {};
  if (is_shipped(path->parent)) return Refusal::kForeign;
  if (!has_memory(root, left, right, clause, &work.of_values)) return Refusal::kMemory;
  const PairShare within = share_of_pairs(root, info->clause, clause);
  const Selectivity candidates = share_of_candidates(root, clause, within).share;
  if (!prefers_node() && candidates < 0 &&
      (has_lookups(outer, inner, info) || has_lookups(inner, outer, info)))
    return Refusal::kFewRows;
  const Selectivity found = fmax(candidates, within.share);
  const Selectivity compared = compared_share(root, right, clause, found);
  const KeysLeft keys = weigh_keys(root, pairs, found, compared, extra->sjinfo);
  work.found = found * keys.share;
  work.compared = compared * keys.share;
  work.asked = list_length(extra->restrictlist) > 1 + keys.conditions ||
               (tests_boxes(clause.test) && !is_exact(clause.test)) || clause.test.open;
  work.of_values += keys.cost;
  const Cost of_pair = set_join_cost(root, work, pairs);
  if (prefers_node()) {
    prefer(path);
    add_path(path->parent, path);
    return Refusal::kCost;
  }
  const Selectivity share = within.share;
  const bool ends_early = pairs->type == JOIN_SEMI || pairs->type == JOIN_ANTI;
  if (are_lookups_cheaper(root, path, outer, inner, info, share) ||
      (pairs->type == JOIN_INNER && are_lookups_cheaper(root, path, inner, outer, info, share)) ||
      (ends_early && work.asked &&
       are_first_matches_cheaper(root, path, left, right, extra->restrictlist,
                                 share_of_matches(root, *extra, info, share))))
    return Refusal::kFewRows;
  const double seen = within.is_seen ? left->rows * right->rows * share : 0;
  add_below_doubtful_joins(root, pairs, info, extra->sjinfo, seen, of_pair);
  return Refusal::kCost;
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
  const RestrictInfo* const info =
      choose_clause(root, extra->restrictlist, type, join, outer, inner, &clause);
  if (info == nullptr) return;
  PairPath* const path = new_pair_path(join, type, left, right);
  path->clause = clause;
  path->conditions = extra->restrictlist;
  path->keys = find_keys(root, *path);
  if (is_of_one_column(clause.test) && !has_bands(path->keys)) return;
  path->names_matches = type == JOIN_SEMI && names_matches(root, join, inner);
  note_refusal(root, info, offer_pairs(root, path, info, outer, inner, extra));
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

void install_join_path() {
  previous_join_hook = set_join_pathlist_hook;
  set_join_pathlist_hook = add_join_path;
  previous_rel_hook = set_rel_pathlist_hook;
  set_rel_pathlist_hook = estimate_conditions;
}

}  // namespace gpujoin
