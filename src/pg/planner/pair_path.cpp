#include "pg/planner/pair_path.h"

#include "pg/planner/join_conditions.h"
#include "pg/planner/key_clause.h"
#include "pg/planner/pair_cost.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "optimizer/pathnode.h"
}

namespace gpujoin {
namespace {

/// The right input becomes the left one.
void swap_inputs(PlannerInfo* root, PairPath* path) {
  List* const inputs = path->custom.custom_paths;
  path->custom.custom_paths = list_make2(lsecond(inputs), linitial(inputs));
  std::swap(path->clause.left, path->clause.right);
  std::swap(path->clause.radii[0], path->clause.radii[1]);
  if (path->keys != NIL)
    path->keys =
        match_keys(root, path->clause, path->conditions, left_relids(path), right_relids(path));
}

/// The path below those that only compute columns.
Path* without_projections(Path* path) {
  while (IsA(path, ProjectionPath)) path = reinterpret_cast<ProjectionPath*>(path)->subpath;
  return path;
}

PairPath* find_join(const RelOptInfo* relation, bool inner_only) {
  PairPath* found = nullptr;
  ListCell* cell;
  foreach (cell, relation->pathlist) {
    Path* const candidate = without_projections(static_cast<Path*>(lfirst(cell)));
    if (!is_pair_path(candidate)) continue;
    PairPath* const join = reinterpret_cast<PairPath*>(candidate);
    if ((inner_only && join->type != JOIN_INNER) || join->nearest.rows > 0 || join->counts ||
        join->names_matches || are_wanted(join->sums))
      continue;
    if (found == nullptr || candidate->total_cost < found->custom.path.total_cost) found = join;
  }
  return found;
}

}  // namespace

PairPath* new_pair_path(RelOptInfo* join, JoinType type, const Path* left, const Path* right) {
  auto* const path = reinterpret_cast<PairPath*>(newNode(sizeof(PairPath), T_CustomPath));
  path->type = type;
  path->join = join;
  path->processes = 1;
  init_custom_path(&path->custom, NodeForm::kJoin, join, nullptr);
  path->custom.path.pathtarget = join->reltarget;
  path->custom.custom_paths = list_make1(const_cast<Path*>(left));
  if (right != nullptr)
    path->custom.custom_paths = lappend(path->custom.custom_paths, const_cast<Path*>(right));
  return path;
}

PairPath* copy_path(const PairPath* path) {
  auto* const copy = reinterpret_cast<PairPath*>(newNode(sizeof(PairPath), T_CustomPath));
  *copy = *path;
  return copy;
}

Plan* plan_join(PlannerInfo* root, RelOptInfo*, CustomPath* custom, List* columns, List*,
                List* inputs) {
  PairPath* const path = as_pair_path(custom);
  return path->nearest.rows > 0 ? plan_nearest(root, path, columns, inputs)
                                : plan_pairs(root, path, columns, inputs);
}

const Path* left_input(const PairPath* path) {
  return static_cast<const Path*>(linitial(path->custom.custom_paths));
}

const Path* right_input(const PairPath* path) {
  return path->scan != nullptr ? path->scan
                               : static_cast<const Path*>(lsecond(path->custom.custom_paths));
}

Relids left_relids(const PairPath* path) { return left_input(path)->parent->relids; }
Relids right_relids(const PairPath* path) { return right_input(path)->parent->relids; }

bool is_of_join(const PairPath& path, const RestrictInfo* condition) {
  return !IS_OUTER_JOIN(path.type) || !RINFO_IS_PUSHED_DOWN(condition, path.join->relids);
}

PairPath* find_inner_join(const RelOptInfo* relation) { return find_join(relation, true); }

PairPath* find_any_join(const RelOptInfo* relation) { return find_join(relation, false); }

bool can_count(const PairPath* join) {
  return can_be_counted(join->clause, join->conditions, join->keys, left_relids(join),
                        right_relids(join));
}

bool can_add_up(const PairPath* join) {
  if (join->type == JOIN_INNER || join->type == JOIN_LEFT) return can_count(join);
  ListCell* cell;
  foreach (cell, join->conditions)
    if (!is_of_join(*join, lfirst_node(RestrictInfo, cell))) return false;
  return true;
}

PairPath* make_counting_path(PlannerInfo* root, const PairPath* join, bool grouped,
                             const RelOptInfo* group, List* having) {
  PairPath* const path = copy_path(join);
  path->counts = true;
  path->grouped = grouped;
  path->having = having;
  if (grouped && right_input(join)->parent == group) swap_inputs(root, path);
  return path;
}

PairPath* make_sum_path(PlannerInfo* root, const PairPath* join, const SumsOfJoin& sums) {
  PairPath* const path = copy_path(join);
  path->sums = sums;
  if (sums.swapped) swap_inputs(root, path);
  return path;
}

PairPath* make_top_path(PlannerInfo* root, const PairPath* join, Expr* score, const TopPlan& top) {
  const SimilarityClause& clause = join->clause;
  ScoreClause found;
  if (tests_boxes(clause.test) || has_row_radii(clause) || clause.test.open ||
      !match_score(root, score, clause, left_relids(join), right_relids(join), &found) ||
      (found.function == ScoreFunction::kDistance && !top.lowest_first))
    return nullptr;
  PairPath* const path = copy_path(join);
  path->keys = NIL;  // of joins whose pairs are all wanted
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
  return path;
}

void place_above(Path* path, const Path* input, RelOptInfo* output, PathTarget* target) {
  path->parent = output;
  path->pathtarget = target;
  path->pathkeys = NIL;
  path->rows = output->pathlist != NIL ? static_cast<Path*>(linitial(output->pathlist))->rows : 1;
  set_counting_cost(path, input);
}

void offer_without_pairs(RelOptInfo* output, Path* path) {
  ListCell* cell;
  foreach (cell, output->pathlist) {
    const Path* const other = static_cast<const Path*>(lfirst(cell));
    if (path->total_cost <= other->total_cost) undercut(path, other);
  }
  add_path(output, path);
}

}  // namespace gpujoin
