// The subquery's plan has its sort and its limit, so the node's second input is another plan of the
// same subquery: a scan of its table with the conditions on its rows alone, in the order of the
// keys that decide among equal distances. Where the query computes the distance of its rows again,
// the node emits it.
#include "pg/planner/nearest_path.h"

#include "pg/executor/custom_scan.h"
#include "pg/executor/join_plan.h"
#include "pg/planner/conditions.h"
#include "pg/planner/distances_above.h"
#include "pg/planner/join_conditions.h"
#include "pg/planner/join_estimate.h"
#include "pg/planner/nested_loops.h"
#include "pg/planner/planning.h"
#include "pg/planner/scan_columns.h"
#include "pg/settings.h"
#include "pg/store/context_end.h"

extern "C" {
#include "foreign/fdwapi.h"
#include "nodes/makefuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

/// A path with the description of its join.
struct NearestPath {
  CustomPath custom;  // first: PostgreSQL knows no more than this
  NearestClause clause;
  JoinType type;
  Relids joined;
  RelOptInfo* inner;
  Path* scan;          ///< of the subquery
  List* conditions;    ///< of RestrictInfo: on the subquery's rows
  List* join_clauses;  ///< of RestrictInfo: of the join
  List* others;        ///< of RestrictInfo: of the table, about both rows
  List* distances;     ///< what distances_above() found
  int processes;       ///< that share the outer rows
};

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
  if (clause.keys == NIL) return scan;
  List* const order =
      make_pathkeys_for_sortclauses(subroot, clause.keys, subroot->parse->targetList);
  if (pathkeys_contained_in(order, scan->pathkeys)) return scan;
  return reinterpret_cast<Path*>(create_sort_path(subroot, table, scan, order, -1));
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

/// The subquery's columns from 1 to `count`, which those beyond its own stand for in the join.
List* numbered_columns(const PlannerInfo* root, const RelOptInfo* inner, const List* targets,
                       bool beyond) {
  List* columns = NIL;
  ListCell* cell;
  foreach (cell, targets) {
    const int number = foreach_current_index(cell);
    const Node* const value = static_cast<const Node*>(lfirst(cell));
    append_column(&columns, makeVar(static_cast<int>(inner->relid),
                                    beyond ? attribute_of(root, inner, number)
                                           : static_cast<AttrNumber>(number + 1),
                                    exprType(value), exprTypmod(value), exprCollation(value), 0));
  }
  return columns;
}

/// The plan of the scan. PostgreSQL reaches the plan of a subquery by a node of its own, which goes
/// when it has nothing to do.
Plan* plan_scan(const NearestPath& path) {
  PlannerInfo* const subroot = path.inner->subroot;
  List* columns = NIL;
  ListCell* cell;
  foreach (cell, path.scan->pathtarget->exprs) append_column(&columns, lfirst(cell));
  List* const wanted = subroot->processed_tlist;
  subroot->processed_tlist = columns;  // whose names the plan's columns get
  Plan* const plan = create_plan(subroot, path.scan);
  subroot->processed_tlist = wanted;
  SubqueryScan* const scan = makeNode(SubqueryScan);
  scan->scan.scanrelid = path.inner->relid;
  scan->scan.plan.targetlist =
      numbered_columns(subroot, path.inner, path.scan->pathtarget->exprs, false);
  scan->scan.plan.startup_cost = plan->startup_cost;
  scan->scan.plan.total_cost = plan->total_cost;
  scan->scan.plan.plan_rows = plan->plan_rows;
  scan->scan.plan.plan_width = plan->plan_width;
  scan->subplan = plan;
  return &scan->scan.plan;
}

// ---- Columns

/// Where the subquery's columns are: in the scan's rows, as they are, or computed by the node.
void find_outputs(const PlannerInfo* root, const NearestPath& path, ScanColumns* scan) {
  const List* const targets = path.scan->pathtarget->exprs;
  List* const beyond = numbered_columns(root, path.inner, targets, true);
  List *right = beyond, *computed = NIL;
  ListCell* cell;
  foreach (cell, path.clause.outputs) {
    Node* const output = static_cast<Node*>(lfirst(cell));
    const auto number = static_cast<AttrNumber>(foreach_current_index(cell) + 1);
    Var* const column = makeVar(static_cast<int>(path.inner->relid), number, exprType(output),
                                exprTypmod(output), exprCollation(output), 0);
    AttrNumber attribute = 0;
    ListCell* other;
    foreach (other, beyond)
      if (equal(lfirst_node(TargetEntry, other)->expr, output))
        attribute = lfirst_node(TargetEntry, other)->resno;
    TargetEntry* const entry =
        makeTargetEntry(reinterpret_cast<Expr*>(column), attribute, nullptr, false);
    (attribute > 0 ? right : computed) =
        lappend(attribute > 0 ? list_copy(right) : computed, entry);
  }
  scan->right = right;
  scan->computed = computed;
}

/// What the computed columns of the scan tuple are, in their order; adds the columns that they are
/// computed of.
List* computed_outputs(const NearestClause& clause, ScanColumns* scan) {
  List* outputs = NIL;
  for (int i = 0; i < list_length(scan->columns); ++i) {
    if (list_nth_int(scan->attributes, i) != 0) continue;
    const Expr* const column = list_nth_node(TargetEntry, scan->columns, i)->expr;
    outputs = lappend(
        outputs, IsA(column, Var)
                     ? list_nth(clause.outputs, reinterpret_cast<const Var*>(column)->varattno - 1)
                     : clause.distance.condition);
  }
  add_columns(scan, outputs);
  return outputs;
}

/// Adds the columns that what stands above uses: a target list, or expressions. A distance among
/// them is a column of the node's own.
void add_columns_above(ScanColumns* scan, const List* above, const List* distances) {
  ListCell* cell;
  foreach (cell, above) {
    void* value = lfirst(cell);
    if (IsA(value, TargetEntry)) value = static_cast<TargetEntry*>(value)->expr;
    if (list_member(distances, value))
      add_computed(scan, static_cast<Expr*>(value));
    else
      add_columns(scan, value);
  }
}

AttrNumber value_attribute(const NearestPath& path) {
  int number = 0;
  ListCell* cell;
  foreach (cell, path.scan->pathtarget->exprs) {
    ++number;
    if (equal(lfirst(cell), path.clause.value)) break;
  }
  return static_cast<AttrNumber>(number);
}

JoinPlanExpressions expressions_of(const NearestPath& path) {
  const NearestClause& clause = path.clause;
  JoinPlanExpressions parts = {};
  parts.early = clause.conditions;
  parts.condition = clause.radius.condition;
  parts.distance = clause.distance.condition;
  parts.limit = clause.limit;
  List *joined = NIL, *pushed = NIL;
  if (IS_OUTER_JOIN(path.type))
    extract_actual_join_clauses(path.join_clauses, path.joined, &joined, &pushed);
  else
    joined = extract_actual_clauses(path.join_clauses, false);
  parts.late = list_concat(extract_actual_clauses(path.conditions, false), joined);
  parts.where = pushed;
  return parts;
}

/// CustomPathMethods::PlanCustomPath.
Plan* plan_path(PlannerInfo* root, RelOptInfo*, CustomPath* custom, List* tlist, List*,
                List* inputs) {
  const NearestPath& path = *reinterpret_cast<const NearestPath*>(custom);
  note_served(root, custom->path.parent);
  planning_of(path.inner->subroot)->ranked = true;
  JoinPlanExpressions parts = expressions_of(path);
  Plan* left = static_cast<Plan*>(linitial(inputs));
  Plan* const right = plan_scan(path);
  JoinPlanData data = {};
  data.join_type = path.type;
  set_radius(root, path.clause.radius.eps, &data, &parts);
  data.test = path.clause.distance.test;
  data.boxes = path.clause.boxes;
  data.nearest = {true, parts.condition != nullptr, path.clause.radius.test, path.processes};
  if (parts.condition == nullptr) data.nearest.radius = data.test;
  data.left_value = place_operand(root, &left, path.clause.distance.left, false,
                                  &parts.left_operand, &data.left_trap);
  if (path.clause.computes) {
    parts.right_operand = path.clause.distance.right;
    data.right_trap = trap_of(root, parts.right_operand, false);
  } else {
    data.right_value = value_attribute(path);
  }
  ScanColumns scan = {NIL, NIL, NIL, left->targetlist, NIL, NIL};
  find_outputs(root, path, &scan);
  add_columns_above(&scan, tlist, path.distances);
  add_columns_above(&scan, custom->path.pathtarget->exprs, path.distances);
  add_columns_above(&scan, path.distances, path.distances);
  for (void* const used :
       {static_cast<void*>(parts.where), static_cast<void*>(parts.late),
        static_cast<void*>(parts.early), static_cast<void*>(parts.condition),
        static_cast<void*>(parts.distance), static_cast<void*>(parts.left_operand),
        static_cast<void*>(parts.right_operand)})
    add_columns(&scan, used);
  parts.outputs = computed_outputs(path.clause, &scan);
  describe_columns(scan, &data);

  return make_join_scan(custom->flags, tlist, left, right, scan, data, parts);
}

const CustomPathMethods kPathMethods = {kCustomScanName, plan_path, nullptr};

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

/// IsOfBothRows, of NearestPath.
bool is_of_both_rows(const RestrictInfo* info, const void* context) {
  const auto* const path = static_cast<const NearestPath*>(context);
  return info != path->clause.radius_info && is_about_outer_row(path->inner, info->clause);
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

/// Returns a path over the outer input's; null where there is too little memory. Workers that share
/// the outer rows have an engine each, as has the leader, so each gets a share of the memory.
CustomPath* make_path(PlannerInfo* root, RelOptInfo* join, const Path* left,
                      const NearestPath& like) {
  NearestPath* const path =
      reinterpret_cast<NearestPath*>(newNode(sizeof(NearestPath), T_CustomPath));
  *path = like;
  path->processes = left->parallel_workers + 1;
  CustomPath* const custom = &path->custom;
  custom->path.type = T_CustomPath;
  custom->path.pathtype = T_CustomScan;
  custom->path.parent = join;
  custom->path.pathtarget = join->reltarget;
  custom->flags = CUSTOMPATH_SUPPORT_PROJECTION;
  custom->custom_paths = list_make1(const_cast<Path*>(left));
  custom->methods = &kPathMethods;
  const NearestCost cost = {
      left,
      path->scan,
      like.clause.rows,
      clauselist_selectivity(like.inner->subroot, like.others, 0, JOIN_INNER, nullptr),
      like.clause.conditions,
      path->processes};
  if (!set_nearest_cost(root, like.inner->subroot, like.clause.distance, like.clause.value, cost,
                        &custom->path))
    return nullptr;
  add_disabled_nodes(&custom->path, {left, path->scan});
  if (prefers_node()) prefer(&custom->path);
  return custom;
}

/// Whether processes may share the outer rows, each with all right rows. PostgreSQL lets no
/// subquery with a limit run in several processes, for its rows may differ; but here each outer
/// row's are found by one process. Where sessions use the device by themselves each process would
/// have to set it up.
bool can_be_shared(PlannerInfo* root, const RelOptInfo* join, const RelOptInfo* outer,
                   const NearestPath& path) {
  const NearestClause& clause = path.clause;
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
        static_cast<const void*>(path.conditions), static_cast<const void*>(path.join_clauses),
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
  else if (IsA(path, CustomPath) && reinterpret_cast<CustomPath*>(path)->methods == &kPathMethods)
    distances = reinterpret_cast<NearestPath*>(path)->distances;
  if (distances == NIL) return NIL;
  path->pathtarget = copy_pathtarget(path->pathtarget);
  add_new_columns_to_pathtarget(path->pathtarget, distances);
  return distances;
}

}  // namespace

void add_nearest_path(PlannerInfo* root, RelOptInfo* join, RelOptInfo* outer, RelOptInfo* inner,
                      JoinType type, const JoinPathExtraData* extra) {
  const Path* const left = outer->cheapest_total_path;
  if ((type != JOIN_INNER && type != JOIN_LEFT) || bms_is_empty(inner->lateral_relids) ||
      !bms_is_empty(join->lateral_relids) || left == nullptr || PATH_REQ_OUTER(left) != nullptr ||
      root->rowMarks != NIL ||
      (root->parse->commandType != CMD_SELECT && root->parse->commandType != CMD_INSERT) ||
      !can_have_conditions(inner->baserestrictinfo) || !can_have_conditions(extra->restrictlist))
    return;
  NearestClause clause;
  if (!match_nearest(root, outer, inner, &clause)) return;
  planning_of(inner->subroot)->may_rank = true;
  NearestPath like = {};
  like.others = other_conditions(clause);
  like.clause = clause;
  like.type = type;
  like.joined = join->relids;
  like.inner = inner;
  if (!prefers_node() && look_few_up(clause.table->pathlist, is_of_both_rows, &like)) return;
  like.scan = find_scan(inner->subroot, clause);
  like.conditions = inner->baserestrictinfo;
  like.join_clauses = extra->restrictlist;
  like.distances = distances_above(root, join, inner, clause);
  if (CustomPath* const path = make_path(root, join, left, like)) add_path(join, &path->path);
  if (!can_be_shared(root, join, outer, like)) return;
  const Path* const part = static_cast<Path*>(linitial(outer->partial_pathlist));
  CustomPath* const path = make_path(root, join, part, like);
  if (path == nullptr) return;
  path->path.parallel_safe = true;
  path->path.parallel_workers = part->parallel_workers;
  path->path.rows = clamp_row_est(join->rows * part->rows / outer->rows);
  // PostgreSQL cleared this for the subquery's LIMIT, and add_partial_path() demands it. Its own
  // paths stay out of workers: each asks its inputs, too, and the subquery's are not safe.
  join->consider_parallel = true;
  add_partial_path(join, &path->path);
}

void emit_distances(RelOptInfo* input) {
  ListCell* cell;
  for (List* const paths : {input->pathlist, input->partial_pathlist})
    foreach (cell, paths) emit_distances(static_cast<Path*>(lfirst(cell)));
}

}  // namespace gpujoin
