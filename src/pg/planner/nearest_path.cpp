// The subquery's plan has its sort and its limit, so the node's second input is another plan of the
// same subquery: a scan of its table with the conditions on its rows alone, in the order of the
// keys that decide among equal distances. Where the query computes the distance of its rows again,
// the node emits it.
#include "pg/planner/nearest_path.h"

#include "pg/planner/distances_above.h"
#include "pg/planner/nested_loops.h"
#include "pg/planner/pair_cost.h"
#include "pg/planner/planning.h"
#include "pg/planner/ranked_clause.h"
#include "pg/settings.h"
#include "pg/store/context_end.h"

extern "C" {
#include "foreign/fdwapi.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

// ---- The scan

/// The indexes for the conditions that the table has. Where it had more, an index of some rows may
/// have been known to have all that these want.
List* remaining_indexes(RelOptInfo* table, bool had_more) {
  List* indexes = NIL;
  ListCell* cell;
  foreach (cell, table->indexlist) {
    const IndexOptInfo* const known = lfirst_node(IndexOptInfo, cell);
    if (had_more && known->indpred != NIL) continue;
    IndexOptInfo* const index = makeNode(IndexOptInfo);
    *index = *known;
    index->rel = table;
    index->indrestrictinfo = table->baserestrictinfo;
    indexes = lappend(indexes, index);
  }
  return indexes;
}

/// What the scan emits: the table's columns, and the compared value unless it is one of them.
PathTarget* scan_target(PlannerInfo* subroot, const NearestClause& clause) {
  PathTarget* const target = create_empty_pathtarget();
  ListCell* cell;
  foreach (cell, clause.columns)
    add_column_to_pathtarget(target, static_cast<Expr*>(lfirst(cell)), 0);
  if (!clause.computes && !list_member(clause.columns, clause.value))
    add_column_to_pathtarget(target, clause.value, 0);
  return set_pathtarget_cost_width(subroot, target);
}

/// A copy of a table or of one of its partitions, for other scans with fewer conditions.
RelOptInfo* copy_table(PlannerInfo* subroot, const RelOptInfo* original, PathTarget* target,
                       List* conditions) {
  RelOptInfo* const table = makeNode(RelOptInfo);
  *table = *original;
  table->reltarget = target;
  table->pathlist = table->partial_pathlist = table->ppilist = NIL;
  table->cheapest_startup_path = table->cheapest_total_path = nullptr;
  table->cheapest_parameterized_paths = NIL;
  table->consider_parallel = false;
  table->baserestrictinfo = conditions;
  table->indexlist =
      remaining_indexes(table, list_length(conditions) < list_length(original->baserestrictinfo));
  set_baserel_size_estimates(subroot, table);
  return table;
}

/// The cheapest scan of a table that has its rows, or whose server has them.
Path* cheapest_scan(PlannerInfo* subroot, RelOptInfo* table) {
  const Oid relation = planner_rt_fetch(table->relid, subroot)->relid;
  if (table->fdwroutine != nullptr) {
    table->fdw_private = nullptr;
    table->fdwroutine->GetForeignRelSize(subroot, table, relation);
    table->fdwroutine->GetForeignPaths(subroot, table, relation);
  } else {
    add_path(table, create_seqscan_path(subroot, table, nullptr, 0));
    create_index_paths(subroot, table);
  }
  set_cheapest(table);
  return table->cheapest_total_path;
}

/// The scans of a table, or of its partitions or children on all levels.
List* scans_of(PlannerInfo* subroot, RelOptInfo* table) {
  if (!planner_rt_fetch(table->relid, subroot)->inh)
    return list_make1(cheapest_scan(subroot, table));
  List* scans = NIL;
  ListCell* cell;
  foreach (cell, subroot->append_rel_list) {
    AppendRelInfo* link = lfirst_node(AppendRelInfo, cell);
    if (link->parent_relid != table->relid) continue;
    RelOptInfo* const child = find_base_rel(subroot, static_cast<int>(link->child_relid));
    if (IS_DUMMY_REL(child)) continue;
    const auto in_its_columns = [&](List* expressions) {
      Node* const node = reinterpret_cast<Node*>(expressions);
      return reinterpret_cast<List*>(adjust_appendrel_attrs(subroot, node, 1, &link));
    };
    PathTarget* const target = copy_pathtarget(table->reltarget);
    target->exprs = in_its_columns(target->exprs);
    scans =
        list_concat(scans, scans_of(subroot, copy_table(subroot, child, target,
                                                        in_its_columns(table->baserestrictinfo))));
  }
  return scans;
}

/// Returns the path's rows in the order of the further sort keys.
Path* sorted(PlannerInfo* root, Path* rows, List* keys, List* targets) {
  List* const order = make_pathkeys_for_sortclauses(root, keys, targets);
  if (pathkeys_contained_in(order, rows->pathkeys)) return rows;
  return reinterpret_cast<Path*>(create_sort_path(root, rows->parent, rows, order, -1));
}

/// Makes the cheapest scan of the table, in the order of the keys.
Path* make_scan(PlannerInfo* subroot, const NearestClause& clause) {
  RelOptInfo* const table =
      copy_table(subroot, clause.table, scan_target(subroot, clause), clause.scan_conditions);
  List* const wanted = subroot->query_pathkeys;
  subroot->query_pathkeys = NIL;  // no scan in the order of distances
  List* const scans = scans_of(subroot, table);
  subroot->query_pathkeys = wanted;
  const bool divided = planner_rt_fetch(table->relid, subroot)->inh;
  Path* const scan = !divided ? static_cast<Path*>(linitial(scans))
                              : reinterpret_cast<Path*>(create_append_path(
                                    subroot, table, scans, NIL, NIL, nullptr, 0, false, -1));
  return sorted(subroot, scan, clause.keys, subroot->parse->targetList);
}

/// The scan of a subquery's table.
struct KnownScan {
  const PlannerInfo* subroot;
  NearestClause clause;
  Path* scan;
  KnownScan* next;
};

KnownScan* known_scans;  ///< of subqueries whose planning has not ended

bool wants_same_scan(const NearestClause& one, const NearestClause& other) {
  return equal(one.columns, other.columns) && equal(one.value, other.value) &&
         equal(one.keys, other.keys) && equal(one.scan_conditions, other.scan_conditions);
}

/// Returns the scan of the subquery's table. Joins of the subquery with other outer relations get
/// the same scan: a foreign server is asked for its costs once. The scan lies in the memory of the
/// subquery's planning, which lasts longer than that of one of GEQO's join orders.
Path* find_scan(PlannerInfo* subroot, const NearestClause& clause) {
  for (const KnownScan* known = known_scans; known != nullptr; known = known->next)
    if (known->subroot == subroot && wants_same_scan(known->clause, clause)) return known->scan;
  const MemoryContext caller = MemoryContextSwitchTo(subroot->planner_cxt);
  NearestClause lasting = clause;
  lasting.columns = static_cast<List*>(copyObjectImpl(clause.columns));
  lasting.value = static_cast<Expr*>(copyObjectImpl(clause.value));
  lasting.keys = list_copy(clause.keys);
  lasting.scan_conditions = list_copy(clause.scan_conditions);
  KnownScan* const made = static_cast<KnownScan*>(palloc(sizeof(KnownScan)));
  *made = {subroot, lasting, make_scan(subroot, lasting), known_scans};
  MemoryContextSwitchTo(caller);
  known_scans = made;
  call_at_end(
      subroot->planner_cxt,
      [](void* ended) {
        KnownScan** known = &known_scans;
        while (*known != ended) known = &(*known)->next;
        *known = (*known)->next;
      },
      made);
  return made->scan;
}

// ---- The path

/// Whether the conditions on the subquery's rows can be the node's.
bool can_have_conditions(const List* conditions) {
  ListCell* cell;
  foreach (cell, conditions) {
    const RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
    if (info->pseudoconstant || info->security_level > 0) return false;
  }
  return true;
}

/// IsOfBothRows for a PairPath. In a subquery a comparison with the outer row's value has one
/// relation, in a join it has two.
bool is_of_both_rows(const RestrictInfo* info, const void* context) {
  const auto* const path = static_cast<const PairPath*>(context);
  if (path->inner != nullptr)
    return info != path->nearest.radius_info && is_about_outer_row(path->inner, info->clause);
  return bms_membership(info->clause_relids) == BMS_MULTIPLE &&
         info->clause != path->nearest.radius.condition;
}

/// The table's conditions about both rows, of RestrictInfo, but for the radius.
List* other_conditions(const NearestClause& clause) {
  List* conditions = NIL;
  ListCell* cell;
  foreach (cell, clause.table->baserestrictinfo) {
    RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
    if (!list_member_ptr(clause.scan_conditions, info) && info != clause.radius_info)
      conditions = lappend(conditions, info);
  }
  return conditions;
}

/// Makes a path that finds nearest rows among those of `right`.
PairPath* new_nearest_path(RelOptInfo* join, JoinType type, const Path* left, const Path* right,
                           const NearestClause& clause) {
  PairPath* const path = new_pair_path(join, type, left, right);
  path->clause = clause.distance;
  path->nearest = clause;
  return path;
}

/// Returns the same path over another path of the outer input; null if there is too little memory.
/// Workers and the leader have an engine each, so each gets a share of the memory.
PairPath* with_left(PlannerInfo* root, const PairPath& like, Selectivity share, const Path* left) {
  PairPath* const path = copy_path(&like);
  path->custom.custom_paths = list_make1(const_cast<Path*>(left));
  path->processes = left->parallel_workers + 1;
  if (!set_nearest_cost(root, share, path)) return nullptr;
  if (prefers_node()) prefer(&path->custom.path);
  return path;
}

/// Whether processes may share the outer rows, each with all right rows. PostgreSQL lets no
/// subquery with a limit run in several processes, for its rows may differ; but here each outer
/// row's are found by one process. Where sessions use the device by themselves each process would
/// have to set it up.
bool can_be_shared(PlannerInfo* root, const RelOptInfo* join, const RelOptInfo* outer,
                   const PairPath& path) {
  const NearestClause& clause = path.nearest;
  PlannerInfo* const subroot = path.inner->subroot;
  const RangeTblEntry* const table = planner_rt_fetch(clause.table->relid, subroot);
  const bool by_service = service_preference() != ServicePreference::kOff;
  if (!outer->consider_parallel || outer->partial_pathlist == NIL ||
      !(by_service || engine_preference() == EnginePreference::kCpu) ||
      get_rel_persistence(table->relid) == RELPERSISTENCE_TEMP)
    return false;
  const auto are_safe = [](PlannerInfo* planner, const void* expressions) {
    return is_parallel_safe(planner, static_cast<Node*>(const_cast<void*>(expressions)));
  };
  for (const void* const expressions :
       {static_cast<const void*>(clause.distance.condition),
        static_cast<const void*>(clause.radius.condition), static_cast<const void*>(clause.limit),
        static_cast<const void*>(clause.conditions), static_cast<const void*>(clause.outputs),
        static_cast<const void*>(path.inner->baserestrictinfo),
        static_cast<const void*>(path.conditions),
        static_cast<const void*>(join->reltarget->exprs)})
    if (!are_safe(root, expressions)) return false;
  return are_safe(subroot, clause.scan_conditions) && are_safe(subroot, clause.value);
}

/// The path below one that passes rows on; null: it is another one.
Path* path_below(Path* path) {
  switch (nodeTag(path)) {
    case T_ProjectionPath:
      return reinterpret_cast<ProjectionPath*>(path)->subpath;
    case T_GatherPath:
      return reinterpret_cast<GatherPath*>(path)->subpath;
    case T_GatherMergePath:
      return reinterpret_cast<GatherMergePath*>(path)->subpath;
    case T_SortPath:
      return reinterpret_cast<SortPath*>(path)->subpath;
    default:
      return nullptr;
  }
}

/// Has the path emit the distances of the node below it; NIL: there is none.
List* emit_distances(Path* path) {
  List* distances = NIL;
  if (Path* const below = path_below(path))
    distances = emit_distances(below);
  else if (is_pair_path(path))
    distances = reinterpret_cast<PairPath*>(path)->distances;
  if (distances == NIL) return NIL;
  path->pathtarget = copy_pathtarget(path->pathtarget);
  add_new_columns_to_pathtarget(path->pathtarget, distances);
  return distances;
}

/// Returns the RestrictInfos whose clauses are among the conditions.
List* infos_of(const List* conditions, const List* clauses) {
  List* infos = NIL;
  ListCell* cell;
  foreach (cell, clauses)
    if (list_member(conditions, lfirst_node(RestrictInfo, cell)->clause))
      infos = lappend(infos, lfirst(cell));
  return infos;
}

/// Notes the reason why a subquery is not served. The reason that comes last in Refusal stays.
void note_refusal(const RelOptInfo* inner, Refusal refusal) {
  if (inner->subroot == nullptr) return;
  Refusal& noted = planning_of(inner->subroot)->nearest;
  noted = std::max(noted, refusal);
}

bool is_of_parameters(const Path* path) {
  return path == nullptr || PATH_REQ_OUTER(path) != nullptr;
}

}  // namespace

void add_nearest_path(PlannerInfo* root, RelOptInfo* join, RelOptInfo* outer, RelOptInfo* inner,
                      JoinType type, const JoinPathExtraData* extra) {
  const Path* const left = outer->cheapest_total_path;
  if ((type != JOIN_INNER && type != JOIN_LEFT) || bms_is_empty(inner->lateral_relids) ||
      !bms_is_empty(join->lateral_relids) || is_of_parameters(left) || root->rowMarks != NIL ||
      (root->parse->commandType != CMD_SELECT && root->parse->commandType != CMD_INSERT) ||
      !can_have_conditions(inner->baserestrictinfo) || !can_have_conditions(extra->restrictlist))
    return;
  NearestClause clause;
  const Refusal refusal = match_nearest(root, outer, inner, &clause);
  if (refusal != Refusal::kNone) return note_refusal(inner, refusal);
  note_refusal(inner, Refusal::kFewRows);
  PairPath* const like = new_nearest_path(join, type, left, nullptr, clause);
  like->inner = inner;
  if (!prefers_node() && look_few_up(clause.table->pathlist, is_of_both_rows, like)) return;
  note_refusal(inner, Refusal::kCost);
  like->scan = find_scan(inner->subroot, clause);
  like->conditions = extra->restrictlist;
  like->distances = distances_above(root, join, inner, clause);
  const Selectivity share =
      clauselist_selectivity(inner->subroot, other_conditions(clause), 0, JOIN_INNER, nullptr);
  if (PairPath* const path = with_left(root, *like, share, left))
    add_path(join, &path->custom.path);
  if (!can_be_shared(root, join, outer, *like)) return;
  const Path* const part = static_cast<Path*>(linitial(outer->partial_pathlist));
  PairPath* const shared = with_left(root, *like, share, part);
  if (shared == nullptr) return;
  Path* const path = &shared->custom.path;
  path->parallel_safe = true;
  path->parallel_workers = part->parallel_workers;
  path->rows = clamp_row_est(join->rows * part->rows / outer->rows);
  // PostgreSQL cleared this for the subquery's LIMIT, and add_partial_path() demands it. Its own
  // paths stay out of workers: each asks its inputs, too, and the subquery's are not safe.
  join->consider_parallel = true;
  add_partial_path(join, path);
}

void add_ranked_path(PlannerInfo* root, RelOptInfo* join, RelOptInfo* outer, RelOptInfo* inner,
                     JoinType type, const JoinPathExtraData* extra) {
  const Path* const left = outer->cheapest_total_path;
  Path* const rows = inner->cheapest_total_path;
  NearestClause clause;
  if (type != JOIN_INNER || !bms_is_empty(join->lateral_relids) || is_of_parameters(left) ||
      is_of_parameters(rows) ||
      !match_ranks(root, join, outer, inner, extra->restrictlist, &clause))
    return;
  const Path* const right = sorted(root, rows, clause.keys, root->processed_tlist);
  PairPath* const ranked = new_nearest_path(join, type, left, right, clause);
  if (!prefers_node() && look_few_up(inner->cheapest_parameterized_paths, is_of_both_rows, ranked))
    return;
  List* const others = infos_of(clause.conditions, extra->restrictlist);
  const Selectivity share = clauselist_selectivity(root, others, 0, JOIN_INNER, extra->sjinfo);
  if (!set_nearest_cost(root, share, ranked)) return;
  // Not all of the join's rows come.
  Path* const path = &ranked->custom.path;
  const double found = clamp_row_est(fmin(join->rows, left->rows * fmin(clause.rows, right->rows)));
  path->total_cost -= path->pathtarget->cost.per_tuple * (path->rows - found);
  path->rows = found;
  if (prefers_node()) prefer(path);
  add_path(join, path);
}

void emit_distances(RelOptInfo* input) {
  ListCell* cell;
  for (List* const paths : {input->pathlist, input->partial_pathlist})
    foreach (cell, paths) emit_distances(static_cast<Path*>(lfirst(cell)));
}

}  // namespace gpujoin
