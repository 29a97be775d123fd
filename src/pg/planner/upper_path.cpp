// Planning of what stands above a join and need not see its pairs: count(*), which only needs their
// number, and ORDER BY score LIMIT k, which only needs the best.
#include "pg/executor/custom_scan.h"
#include "pg/planner/function_path.h"
#include "pg/planner/nearest_path.h"
#include "pg/planner/pair_cost.h"
#include "pg/planner/pair_path.h"
#include "pg/planner/sum_path.h"
#include "pg/planner/unique_rows.h"
#include "pg/reading/relation.h"
#include "pg/settings.h"
#include "pg/windows/window_path.h"

extern "C" {
#include "catalog/pg_am.h"
#include "commands/defrem.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

create_upper_paths_hook_type previous_hook = nullptr;

bool is_plain_count(const Aggref* aggregate) {
  return aggregate->aggfnoid == F_COUNT_ && aggregate->aggstar && aggregate->aggfilter == nullptr &&
         aggregate->aggsplit == AGGSPLIT_SIMPLE;
}

/// Whether all expressions are numbers of pairs or columns of `group`, which may be null.
bool asks_for_counts(List* expressions, const RelOptInfo* group) {
  List* const used =
      pull_var_clause(reinterpret_cast<Node*>(expressions),
                      PVC_INCLUDE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_RECURSE_PLACEHOLDERS);
  bool counts = false;
  ListCell* cell;
  foreach (cell, used) {
    const Node* const column = static_cast<const Node*>(lfirst(cell));
    if (IsA(column, Aggref)) {
      if (!is_plain_count(reinterpret_cast<const Aggref*>(column))) return false;
      counts = true;
    } else if (group == nullptr || !IsA(column, Var) ||
               !bms_is_member(reinterpret_cast<const Var*>(column)->varno, group->relids)) {
      return false;  // a GroupingFunc, too
    }
  }
  return counts;
}

/// Whether one pair may fall into another group at each evaluation.
bool has_volatile_groups(PlannerInfo* root) {
  Node* const columns = reinterpret_cast<Node*>(
      get_sortgrouplist_exprs(root->parse->groupClause, root->processed_tlist));
  return contain_volatile_functions(columns) || contain_subplans(columns);
}

/// The input of the join whose rows the query groups by; null when they are no groups.
RelOptInfo* find_group(PlannerInfo* root, const PairPath* join) {
  if (has_volatile_groups(root)) return nullptr;
  ListCell* cell;
  foreach (cell, join->custom.custom_paths) {
    RelOptInfo* const relation = static_cast<Path*>(lfirst(cell))->parent;
    if (is_grouped_by_key(root, relation, root->parse->groupClause)) return relation;
  }
  return nullptr;
}

void offer_counts(CustomPath* custom, const Path* input, RelOptInfo* output) {
  place_above(&custom->path, input, output, output->reltarget);
  offer_without_pairs(output, &custom->path);
}

/// count(*) over a join. False: it is not that.
bool add_counting_path(PlannerInfo* root, RelOptInfo* input, RelOptInfo* output,
                       const GroupPathExtraData* extra) {
  const Query* const query = root->parse;
  if (!query->hasAggs || query->groupingSets != NIL) return false;
  List* const having = reinterpret_cast<List*>(extra->havingQual);
  List* const asked = list_concat_copy(output->reltarget->exprs, having);
  const bool grouped = query->groupClause != NIL;
  if (const PairPath* const join = find_inner_join(input)) {
    RelOptInfo* const group = grouped ? find_group(root, join) : nullptr;
    if (!can_count(join) || (grouped && group == nullptr) || !asks_for_counts(asked, group))
      return false;
    offer_counts(&make_counting_path(root, join, grouped, group, having)->custom,
                 &join->custom.path, output);
    return true;
  }
  if (CustomPath* const call = find_plain_call(input)) {
    if (grouped || having != NIL || !asks_for_counts(asked, nullptr)) return false;
    offer_counts(make_counting_call(call), &call->path, output);
    return true;
  }
  return false;
}

/// Whether the key orders numbers as their type does by itself.
bool is_order_of_numbers(const PathKey* key, const EquivalenceMember* member) {
  const Oid type = exprType(reinterpret_cast<Node*>(member->em_expr));
  return is_number_type(type) &&
         key->pk_opfamily == get_opclass_family(GetDefaultOpClass(type, BTREE_AM_OID));
}

/// The path for the query's order; null where the order does not begin with a score.
PairPath* make_ordered_path(PlannerInfo* root, const PairPath* join) {
  const PathKey* const key = linitial_node(PathKey, root->sort_pathkeys);
  TopPlan top = {};
  top.k = static_cast<int>(root->limit_tuples);
  top.lowest_first = is_ascending(key);
  top.ties = list_length(root->sort_pathkeys) > 1;
  ListCell* cell;
  foreach (cell, key->pk_eclass->ec_members) {
    const EquivalenceMember* const member = lfirst_node(EquivalenceMember, cell);
    if (!is_order_of_numbers(key, member)) continue;
    if (PairPath* const path = make_top_path(root, join, member->em_expr, top)) return path;
  }
  return nullptr;
}

bool is_constant(const Node* limit) { return limit == nullptr || IsA(limit, Const); }

/// ORDER BY score LIMIT k: the node emits what may be among the first k pairs, which are sorted
/// above it. Where rows are locked some may drop out, and others take their place.
void add_top_path(PlannerInfo* root, RelOptInfo* input, RelOptInfo* output) {
  constexpr double kMostPairs = 1e5;
  const Query* const query = root->parse;
  if (root->rowMarks != NIL || root->sort_pathkeys == NIL || root->limit_tuples < 1 ||
      root->limit_tuples > kMostPairs || query->limitOption != LIMIT_OPTION_COUNT ||
      !is_constant(query->limitCount) || !is_constant(query->limitOffset))
    return;
  const PairPath* const join = find_inner_join(input);
  PairPath* const ordered = join != nullptr ? make_ordered_path(root, join) : nullptr;
  if (ordered == nullptr) return;
  Path* const top = &ordered->custom.path;
  top->pathtarget = input->reltarget;
  top->rows = fmin(join->custom.path.rows, 2 * root->limit_tuples);
  set_counting_cost(top, &join->custom.path);
  Path* sorted =
      &create_sort_path(root, output, top, root->sort_pathkeys, root->limit_tuples)->path;
  PathTarget* const target = root->upper_targets[UPPERREL_ORDERED];
  if (sorted->pathtarget != target) sorted = apply_projection_to_path(root, output, sorted, target);
  add_path(output, sorted);
}

/// create_upper_paths_hook.
void add_upper_paths(PlannerInfo* root, UpperRelationKind stage, RelOptInfo* input,
                     RelOptInfo* output, void* extra) {
  if (previous_hook != nullptr) previous_hook(root, stage, input, output, extra);
  if (!customscan_enabled() || root->parse->hasTargetSRFs) return;
  if (stage == UPPERREL_GROUP_AGG) {
    const auto* const group = static_cast<const GroupPathExtraData*>(extra);
    if (!add_counting_path(root, input, output, group)) add_sum_path(root, input, output, group);
    emit_distances(input);
  }
  if (stage == UPPERREL_DISTINCT) add_distinct_path(root, input, output);
  if (stage == UPPERREL_WINDOW) add_window_paths(root, output);
  if (stage == UPPERREL_ORDERED) add_top_path(root, input, output);
}

}  // namespace

void install_upper_path() {
  previous_hook = create_upper_paths_hook;
  create_upper_paths_hook = add_upper_paths;
}

}  // namespace gpujoin
