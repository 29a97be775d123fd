#include "pg/planner/nested_loops.h"

#include "pg/planner/pair_cost.h"

extern "C" {
#include "catalog/pg_am.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "utils/selfuncs.h"
}

namespace gpujoin {
namespace {

/// The first rows may come so many times later than they would if matches were spread evenly.
constexpr double kLateMatches = 30;
/// A loop that may well end after a few pairs is worth the risk of costing so many times as much.
constexpr double kRiskForFirstRows = 4;

/// The path below one that gives the same rows; null: it is another one.
const Path* same_rows_below(const Path* path) {
  switch (nodeTag(path)) {
    case T_MemoizePath:
      return reinterpret_cast<const MemoizePath*>(path)->subpath;
    case T_MaterialPath:
      return reinterpret_cast<const MaterialPath*>(path)->subpath;
    case T_ProjectionPath:
      return reinterpret_cast<const ProjectionPath*>(path)->subpath;
    case T_BitmapHeapPath:
      return reinterpret_cast<const BitmapHeapPath*>(path)->bitmapqual;
    default:
      return nullptr;
  }
}

/// The index by which a path finds its rows; null where it is none, or several.
const IndexPath* index_of(const Path* path) {
  while (const Path* const below = same_rows_below(path)) path = below;
  return IsA(path, IndexPath) ? reinterpret_cast<const IndexPath*>(path) : nullptr;
}

/// Whether a lookup in an index leaves few rows: it is by equality, or no matter of order at all,
/// as in GiST. `b.id < a.id` leaves half of them.
bool finds_few(const Path* lookup) {
  const IndexPath* const index = index_of(lookup);
  if (index == nullptr || index->indexinfo->relam != BTREE_AM_OID) return true;
  ListCell* cell;
  foreach (cell, index->indexclauses)
    if (lfirst_node(IndexClause, cell)->rinfo->mergeopfamilies != NIL) return true;
  return false;
}

/// Whether the condition is what a path looks up in an index.
bool looks_up(const Path* path, const RestrictInfo* info) {
  const IndexPath* const index = index_of(path);
  if (index == nullptr) return false;
  ListCell* cell;
  foreach (cell, index->indexclauses)
    if (lfirst_node(IndexClause, cell)->rinfo == info) return true;
  return false;
}

/// Returns true if the loop compares all pairs of rows, or many of them: the inner rows are not
/// looked up by the outer one.
bool compares_all_pairs(const JoinPath& loop) {
  const bool looked_up =
      bms_overlap(PATH_REQ_OUTER(loop.innerjoinpath), loop.outerjoinpath->parent->relids);
  return !looked_up || !finds_few(loop.innerjoinpath);
}

/// Whether ANALYZE has seen the values of an expression.
bool has_statistics(PlannerInfo* root, Node* expression) {
  VariableStatData data;
  examine_variable(root, expression, 0, &data);
  const bool found = HeapTupleIsValid(data.statsTuple) || data.isunique;
  ReleaseVariableStats(data);
  return found;
}

/// Whether statistics tell how many rows meet a condition: a column with them is compared with a
/// constant in the order of its type, or asked for NULL.
bool is_well_estimated(PlannerInfo* root, Node* condition) {
  if (IsA(condition, NullTest))
    return has_statistics(root,
                          reinterpret_cast<Node*>(reinterpret_cast<NullTest*>(condition)->arg));
  if (!is_opclause(condition)) return false;
  const OpExpr* const comparison = reinterpret_cast<OpExpr*>(condition);
  if (list_length(comparison->args) != 2 || !compares_in_order(comparison->opno)) return false;
  Node* const left = static_cast<Node*>(linitial(comparison->args));
  Node* const right = static_cast<Node*>(lsecond(comparison->args));
  if (IsA(left, Const) == IsA(right, Const)) return false;
  return has_statistics(root, IsA(left, Const) ? right : left);
}

/// How many times more rows a table may have than the planner expects: the geometric mean of what
/// it expects and of all that the well estimated conditions leave, to what it expects.
double doubt_of_table(PlannerInfo* root, RelOptInfo* rel) {
  if (rel->rtekind != RTE_RELATION || rel->baserestrictinfo == NIL ||
      relation_has_unique_index_for(root, rel, NIL, NIL, NIL))
    return 1;
  double most = 1;
  ListCell* cell;
  foreach (cell, rel->baserestrictinfo) {
    RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
    Node* const condition = reinterpret_cast<Node*>(info);
    if (is_well_estimated(root, reinterpret_cast<Node*>(info->clause)))
      most = fmin(most, clause_selectivity(root, condition, 0, JOIN_INNER, nullptr));
  }
  return sqrt(fmax(1, most * rel->tuples / clamp_row_est(rel->rows)));
}

double doubt_of(PlannerInfo* root, Relids relids) {
  double doubt = 1;
  int relid = -1;
  while ((relid = bms_next_member(relids, relid)) >= 0)
    if (relid < root->simple_rel_array_size && root->simple_rel_array[relid] != nullptr &&
        root->simple_rel_array[relid]->reloptkind == RELOPT_BASEREL)
      doubt *= doubt_of_table(root, root->simple_rel_array[relid]);
  return doubt;
}

/// The share of a relation's rows that a statement that wants the first rows is expected to need.
double needed_share(const PlannerInfo* root, double rows) {
  if (root->tuple_fraction <= 0) return 1;
  if (root->tuple_fraction < 1) return root->tuple_fraction;
  return rows > root->tuple_fraction ? root->tuple_fraction / rows : 1;
}

/// The share of a path's rows of which each sort needs all: 0 where the rows come in the order that
/// is wanted, and 1 where they are not in order by its first column either.
double sorted_together(PlannerInfo* root, const Path* path) {
  int in_order = 0;
  if (pathkeys_count_contained_in(root->query_pathkeys, path->pathkeys, &in_order)) return 0;
  if (in_order == 0 || !enable_incremental_sort) return 1;
  List* columns = NIL;
  for (int i = 0; i < in_order; ++i) {
    const PathKey* const key = list_nth_node(PathKey, path->pathkeys, i);
    const auto* const member =
        static_cast<const EquivalenceMember*>(linitial(key->pk_eclass->ec_members));
    columns = lappend(columns, member->em_expr);
  }
  const Relids relids = pull_varnos(root, reinterpret_cast<Node*>(columns));
  const double groups = bms_is_member(0, relids)
                            ? 1
                            : estimate_num_groups(root, columns, path->rows, nullptr, nullptr);
  return 1 / fmax(groups, 1);
}

bool is_join(const Path* path) {
  return path->pathtype == T_NestLoop || path->pathtype == T_HashJoin ||
         path->pathtype == T_MergeJoin;
}

/// Returns the number of pairs that a join of PostgreSQL's is expected to evaluate the condition
/// for, which it does after all others.
double evaluated_pairs(PlannerInfo* root, const JoinPath& join, const RestrictInfo* info,
                       SpecialJoinInfo* sides) {
  double pairs = join.outerjoinpath->rows * join.innerjoinpath->rows;
  ListCell* cell;
  foreach (cell, join.joinrestrictinfo)
    if (lfirst(cell) != info)
      pairs *= clause_selectivity(root, static_cast<Node*>(lfirst(cell)), 0, JOIN_INNER, sides);
  return pairs;
}

/// Returns what a join of PostgreSQL's may well cost if filters leave `doubt` times as many pairs
/// as expected, and if only `seen` matches are certain. `unpriced`: what PostgreSQL does not price.
Cost doubtful_cost(PlannerInfo* root, const JoinPath& join, double doubt, double seen,
                   Cost unpriced) {
  const Path *const path = &join.path, *const outer = join.outerjoinpath;
  const bool loops = path->pathtype == T_NestLoop, all = loops && compares_all_pairs(join);
  const double needed = needed_share(root, fmin(path->rows, seen));
  const double together = needed < 1 ? sorted_together(root, path) : 1;
  if (loops && !all) {
    if (together < 1) return 0;  // it ends early, and goes on quickly
    const Cost lookups = fmax(0, path->total_cost - outer->total_cost) + unpriced;
    return outer->total_cost + lookups * doubt_of(root, outer->parent->relids);
  }
  if (!loops) doubt = pow(doubt, 0.75);  // keys leave few pairs of any rows
  const Path* const inner = join.innerjoinpath;
  const Cost inputs = outer->total_cost + inner->total_cost;
  Cost pairs = fmax(0, path->total_cost - inputs) + unpriced;
  if (loops && !IsA(inner, MaterialPath))  // of each outer row
    pairs += inner->total_cost * outer->rows * (1 - 1 / doubt_of(root, outer->parent->relids));
  if (together >= 1) return inputs + pairs * doubt;
  // Where a filter leaves more rows there are more matches, too.
  const double late = kLateMatches * (needed + together);
  return (inputs * fmin(1, late) + pairs * fmin(doubt, late)) / kRiskForFirstRows;
}

/// What a lookup of one row costs where it leaves so many rows: PostgreSQL expects a fixed share of
/// the table, whatever is looked up. A page of the index and a page of the table are read.
Cost lookup_cost(const Path* lookup, double rows) {
  const double share = fmin(1, rows / fmax(lookup->rows, 1));
  const Cost cost = lookup->startup_cost + (lookup->total_cost - lookup->startup_cost) * share;
  return fmax(cost, 2 * random_page_cost);
}

/// Whether the path looks the condition up for each outer row.
bool is_lookup(const Path* path, const RelOptInfo* outer, const RestrictInfo* info) {
  return !is_disabled(path) && bms_is_subset(PATH_REQ_OUTER(path), outer->relids) &&
         looks_up(path, info);
}

}  // namespace

bool has_lookups(const RelOptInfo* outer, const RelOptInfo* inner, const RestrictInfo* info) {
  ListCell* cell;
  foreach (cell, enable_nestloop ? inner->cheapest_parameterized_paths : NIL)
    if (is_lookup(static_cast<const Path*>(lfirst(cell)), outer, info)) return true;
  return false;
}

bool are_lookups_cheaper(PlannerInfo* root, const Path* node, const RelOptInfo* outer,
                         const RelOptInfo* inner, const RestrictInfo* info, Selectivity share) {
  if (!enable_nestloop) return false;
  ListCell* cell;
  foreach (cell, inner->cheapest_parameterized_paths) {
    const Path* const path = static_cast<const Path*>(lfirst(cell));
    if (!is_lookup(path, outer, info)) continue;
    const double lookups = outer->rows * doubt_of(root, outer->relids);
    const Cost loop =
        outer->cheapest_total_path->total_cost + lookups * lookup_cost(path, share * inner->rows);
    if (loop < node->total_cost) return true;
  }
  return false;
}

bool are_first_matches_cheaper(PlannerInfo* root, const Path* node, const Path* outer,
                               const Path* inner, List* conditions, Selectivity matching) {
  constexpr double kManyMatches = 100;  // with fewer on average some rows may well have none
  if (!enable_nestloop || matching * inner->rows < kManyMatches) return false;
  QualCost of_pair;
  cost_qual_eval(&of_pair, conditions, root);
  const double pairs = outer->rows * fmin(inner->rows, kLateMatches / matching);
  const Cost loop = outer->total_cost + inner->total_cost + of_pair.startup +
                    (cpu_tuple_cost + of_pair.per_tuple) * pairs;
  return loop < node->total_cost;
}

namespace {

/// Whether the index looks up a range, or what it serves without an order, as GiST does.
bool looks_few_up(const IndexPath* index, IsOfBothRows is_of_both, const void* context) {
  int column = -1;  // of the index, which is compared before
  ListCell* cell;
  foreach (cell, index->indexclauses) {
    const IndexClause* const clause = lfirst_node(IndexClause, cell);
    if (clause->rinfo->mergeopfamilies != NIL || !is_of_both(clause->rinfo, context)) continue;
    if (index->indexinfo->relam != BTREE_AM_OID || clause->indexcol == column) return true;
    column = clause->indexcol;
  }
  return false;
}

/// The rows of tables, and of those tables in which a path looks few rows up.
struct LookedUp {
  double all, few;

  void add(const Path* path, IsOfBothRows is_of_both, const void* context) {
    while (const Path* const below = same_rows_below(path)) path = below;
    if (IsA(path, AppendPath) || IsA(path, MergeAppendPath)) {
      ListCell* cell;
      foreach (cell, IsA(path, AppendPath)
                         ? reinterpret_cast<const AppendPath*>(path)->subpaths
                         : reinterpret_cast<const MergeAppendPath*>(path)->subpaths)
        add(static_cast<const Path*>(lfirst(cell)), is_of_both, context);
      return;
    }
    const double rows = fmax(path->parent->tuples, 1);
    all += rows;
    if (IsA(path, IndexPath) &&
        looks_few_up(reinterpret_cast<const IndexPath*>(path), is_of_both, context))
      few += rows;
  }
};

}  // namespace

bool look_few_up(const List* lookups, IsOfBothRows is_of_both, const void* context) {
  ListCell* cell;
  foreach (cell, lookups) {
    LookedUp rows = {0, 0};
    rows.add(static_cast<const Path*>(lfirst(cell)), is_of_both, context);
    if (2 * rows.few > rows.all) return true;
  }
  return false;
}

void add_below_doubtful_joins(PlannerInfo* root, PairPath* node, const RestrictInfo* info,
                              SpecialJoinInfo* sides, double seen, Cost of_pair) {
  Path* const path = &node->custom.path;
  RelOptInfo* const join = path->parent;
  const Cost cost = path->total_cost;
  const double doubt = doubt_of(root, join->relids);
  List* sorted = NIL;
  for (const List* const paths : {join->pathlist, join->partial_pathlist}) {
    ListCell* cell;
    foreach (cell, paths) {
      const Path* const other = static_cast<const Path*>(lfirst(cell));
      if (!is_join(other) || PATH_REQ_OUTER(other) != nullptr) continue;
      const JoinPath& pairs = *reinterpret_cast<const JoinPath*>(other);
      const Cost unpriced = of_pair > 0 ? of_pair * evaluated_pairs(root, pairs, info, sides) : 0;
      if (doubtful_cost(root, pairs, doubt, seen, unpriced) <= cost) continue;
      const double share = needed_share(root, other->rows);
      undercut(path, other, kClearlyLess * kClearlyLess, share);
      if (other->pathkeys == NIL) continue;
      // add_path() frees paths, but not the copy, which is in no list.
      Path* const below = &copy_path(node)->custom.path;
      SortPath* const in_order = create_sort_path(root, join, below, other->pathkeys, -1);
      undercut(&in_order->path, other, kClearlyLess, share);
      sorted = lappend(sorted, in_order);
    }
  }
  add_path(join, path);
  ListCell* cell;
  foreach (cell, sorted) add_path(join, static_cast<Path*>(lfirst(cell)));
}

}  // namespace gpujoin
