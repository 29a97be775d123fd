// Adds paths of GpuSimilarityScan beside PostgreSQL's own scans of a table. A path serves a
// condition that bounds the distance between a column and a value from outside the table, or an
// ORDER BY of such a distance. The value is a constant, a parameter, or comes from an outer row.
// PostgreSQL plans everything above the scan, so these paths also serve subqueries, LATERAL, window
// functions and loops.
#include "pg/executor/custom_scan.h"
#include "pg/executor/search_node.h"
#include "pg/planner/comparison.h"
#include "pg/planner/conditions.h"
#include "pg/planner/implied_distance.h"
#include "pg/planner/pair_cost.h"
#include "pg/planner/planning.h"
#include "pg/planner/ranked_clause.h"
#include "pg/planner/safe_expression.h"
#include "pg/reading/column_sample.h"
#include "pg/reading/kept_side.h"
#include "pg/settings.h"

extern "C" {
#include "access/table.h"
#include "nodes/extensible.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/spccache.h"
}

namespace gpujoin {
namespace {

constexpr double kMinRows = 1000;         // a sequential scan of fewer rows is as fast
constexpr double kMaxFound = 5000;        // half of what the service returns for one search
constexpr double kExpectedSearches = 20;  // of a value that changes, which repay reading the table
constexpr double kRowOperators = 40;  // measured: fetching a row takes twice as long as sorting it
constexpr double kDefaultIneqShare = 0.333;  // just below PostgreSQL's DEFAULT_INEQ_SEL

set_rel_pathlist_hook_type previous_hook = nullptr;

/// The search that a path makes.
struct SearchClause {
  SimilarityClause distance;  ///< of the ORDER BY; its right value is the column
  SimilarityClause radius;    ///< bounds the distance; without a bound, test.type is null
  const PathKey* order;       ///< null without ORDER BY
  Selectivity share;          ///< estimated share of rows within the radius
  Relids outer;               ///< relations whose rows have the value and the radius
  const RestrictInfo* info;   ///< the join condition behind `outer`; null without one
};

bool is_ordered(const SearchClause& clause) { return clause.order != nullptr; }
bool is_bounded(const SearchClause& clause) { return clause.radius.test.type != nullptr; }

/// Returns the clause that has the searched value on the left and the column on the right.
const SimilarityClause& values_of(const SearchClause& clause) {
  return is_ordered(clause) ? clause.distance : clause.radius;
}

struct SearchPath {
  CustomPath custom;  // first: PostgreSQL knows no more than this
  SearchClause clause;
  bool is_kept;       ///< the service has the table.
  bool drops_errors;  ///< SearchPlan::drops_errors.
  double taken;       ///< largest number of rows that the plan above takes, or 0 for all.
  double expected;    ///< rows that the node is expected to find for the plan above.
};

// ---- Conditions and orders

/// Returns true if only rows within a distance of the value can fulfil the test.
bool is_searchable(const SimilarityTest& test) {
  return !tests_boxes(test) && !test.of_nan && !test.of_null && !test.by->of_empty;
}

bool is_column(const RelOptInfo* rel, const Node* value) {
  const auto* const column = reinterpret_cast<const Var*>(value);
  return IsA(value, Var) && column->varno == static_cast<int>(rel->relid) && column->varattno > 0;
}

/// Returns the user columns of the table that the value is: one, or those in ARRAY[x, y] or
/// point(x, y). NIL if the value is something else.
List* columns_of(const RelOptInfo* rel, const Expr* value) {
  const Node* const node = reinterpret_cast<const Node*>(value);
  const List* values = list_make1(const_cast<Node*>(node));
  if (IsA(node, ArrayExpr))
    values = reinterpret_cast<const ArrayExpr*>(value)->elements;
  else if (IsA(node, FuncExpr) &&
           reinterpret_cast<const FuncExpr*>(value)->funcid == F_POINT_FLOAT8_FLOAT8)
    values = reinterpret_cast<const FuncExpr*>(value)->args;
  List* columns = NIL;
  ListCell* cell;
  foreach (cell, values) {
    if (!is_column(rel, static_cast<const Node*>(lfirst(cell)))) return NIL;
    columns = lappend_int(columns, static_cast<const Var*>(lfirst(cell))->varattno);
  }
  return columns;
}

/// Returns true if the node can search such values: columns, or what is computed of them.
bool can_search(PlannerInfo* root, const RelOptInfo* rel, Expr* value) {
  return columns_of(rel, value) != NIL || can_be_evaluated(root, value);
}

/// Returns false for a constant radius that no engine can use, such as NaN.
bool may_be_usable(const SimilarityClause& radius) {
  if (!IsA(radius.eps, Const)) return true;
  const auto* const eps = reinterpret_cast<const Const*>(radius.eps);
  return !eps->constisnull &&
         eps_band(radius.test, DatumGetFloat8(eps->constvalue), 1).engine_serves;
}

/// Sets *radius if the condition bounds the distance between a column of the table and a value of
/// `outer`. If `outer` is empty, the value must come from no relation.
bool match_radius(PlannerInfo* root, const RelOptInfo* rel, const RestrictInfo* info, Relids outer,
                  SimilarityClause* radius) {
  return !info->pseudoconstant && info->security_level <= rel->baserestrict_min_security &&
         implied_distance(info->clause, radius) && is_searchable(radius->test) &&
         radius->with == NIL && bind_to_sides(root, outer, rel->relids, radius) &&
         !has_row_radii(*radius) && can_search(root, rel, radius->right) && may_be_usable(*radius);
}

/// Returns the expression over the table's row that has the order of the key, or null.
Expr* find_sorted_expression(const RelOptInfo* rel, const PathKey* key) {
  ListCell* cell;
  foreach (cell, members_of(rel, key->pk_eclass)) {
    const auto* const member = lfirst_node(EquivalenceMember, cell);
    if (bms_equal(member->em_relids, rel->relids)) return member->em_expr;
  }
  return nullptr;
}

/// Sets *distance if the expression is a distance or rises with it. With `falls`, if the expression
/// falls as the distance rises.
bool match_ranked(PlannerInfo* root, Expr* expression, bool falls, Relids rel,
                  SimilarityClause* distance) {
  if (!falls && match_distance(root, expression, nullptr, rel, distance)) return true;
  Expr* const measured = distance_below(expression, falls);
  if (measured == nullptr || !match_distance(root, measured, nullptr, rel, distance) ||
      has_form(*distance->test.type, ValueForm::kMiddle))
    return false;
  distance->condition = expression;
  distance->test.open = true;
  return true;
}

/// Sets the clause's order if the query is sorted by a distance of the table first.
bool match_order(PlannerInfo* root, const RelOptInfo* rel, SearchClause* clause) {
  if (root->query_pathkeys == NIL || root->qual_security_level > 0) return false;
  const auto* const key = linitial_node(PathKey, root->query_pathkeys);
  Expr* const expression = find_sorted_expression(rel, key);
  if (expression == nullptr || IsA(expression, Var) ||
      !match_ranked(root, expression, !is_ascending(key), rel->relids, &clause->distance) ||
      !is_searchable(clause->distance.test) || !can_search(root, rel, clause->distance.right))
    return false;
  clause->order = key;
  return true;
}

/// Returns false if rows without a distance have to come first: a search does not find them.
bool can_start_with_nearest(PlannerInfo* root, const RelOptInfo* rel, const SearchClause& clause) {
  if (!clause.order->pk_nulls_first || is_bounded(clause)) return true;
  List* const columns = columns_of(rel, clause.distance.right);
  if (columns == NIL) return false;
  ListCell* cell;
  foreach (cell, columns)
    if (!is_never_null(root, rel, static_cast<AttrNumber>(lfirst_int(cell)))) return false;
  return true;
}

/// Returns true if both clauses compare the same values in the same metric.
bool are_alike(const SimilarityClause& a, const SimilarityClause& b) {
  return a.test.type == b.test.type && a.test.by->compared == b.test.by->compared &&
         a.test.by->metric == b.test.by->metric && equal(a.left, b.left) && equal(a.right, b.right);
}

/// Returns true if the value differs from search to search because it comes from outer rows.
bool is_of_outer_rows(Expr* value) {
  Node* const node = reinterpret_cast<Node*>(value);
  return contain_var_clause(node) || uses_outer_value(node);
}

/// Returns true if the node may evaluate the value and the radius once for each search. PostgreSQL
/// evaluates them only for rows that pass the quals before. *drops_errors: the node has to drop
/// their errors.
bool can_evaluate(PlannerInfo* root, const RelOptInfo* rel, const SearchClause& clause,
                  bool* drops_errors) {
  Expr* const evaluated = reinterpret_cast<Expr*>(
      list_make2(values_of(clause).left, is_bounded(clause) ? clause.radius.eps : nullptr));
  *drops_errors = false;
  if (cannot_raise(root, evaluated)) return true;
  // To estimate the rows of a parameterized path, PostgreSQL may evaluate them while planning.
  if (clause.outer != nullptr) return false;
  *drops_errors = can_drop_errors(root, evaluated);
  // Without other quals the first row makes PostgreSQL evaluate them.
  return *drops_errors || list_length(rel->baserestrictinfo) == (is_bounded(clause) ? 1 : 0);
}

// ---- Paths

/// Returns true if the node can scan the relation. A partition is one, a partitioned table is not.
bool is_plain_table(const RelOptInfo* rel, const RangeTblEntry* entry) {
  return (rel->reloptkind == RELOPT_BASEREL || rel->reloptkind == RELOPT_OTHER_MEMBER_REL) &&
         rel->rtekind == RTE_RELATION && !entry->inh && entry->tablesample == nullptr &&
         (entry->relkind == RELKIND_RELATION || entry->relkind == RELKIND_MATVIEW) &&
         (rel->tuples >= kMinRows || prefers_node());
}

/// The table that paths search, and what the service said of its columns.
struct SearchedTable {
  RelOptInfo* rel;
  const Path* seqscan;
  List* columns;        ///< that were checked last; NIL: none, or the values are computed
  SimilarityTest test;  ///< of their values
  bool fits;            ///< the columns' types fit the test
  bool is_kept;         ///< the service has the columns
};

const Path* find_seqscan(const RelOptInfo* rel) {
  ListCell* cell;
  foreach (cell, rel->pathlist) {
    const Path* const path = static_cast<const Path*>(lfirst(cell));
    if (path->pathtype == T_SeqScan && path->param_info == nullptr) return path;
  }
  return nullptr;
}

/// Sets SearchedTable::fits and is_kept for the columns of a clause, unless they are those that
/// were checked last: asking the service takes as long as planning a small query.
void check_columns(PlannerInfo* root, const SimilarityClause& values, SearchedTable* table) {
  List* const columns = columns_of(table->rel, values.right);
  if (equal(columns, table->columns) && table->test.type == values.test.type &&
      table->test.by->compared == values.test.by->compared)
    return;
  table->columns = columns;
  table->test = values.test;
  table->is_kept = false;
  table->fits = columns == NIL;
  if (table->fits) return;
  const RangeTblEntry* const entry = planner_rt_fetch(table->rel->relid, root);
  const Relation relation = table_open(entry->relid, NoLock);  // the planner holds a lock
  SideColumns kept;
  table->fits =
      take_value_columns(relation, columns, *values.test.type, values.test.by->compared, &kept);
  table_close(relation, NoLock);
  table->is_kept = table->fits && service_preference() != ServicePreference::kOff && are_kept(kept);
}

/// Returns the number of rows after which a window over all rows ends early, as by `rank() <= 3`,
/// or 0 if the window takes all rows.
double rows_of_window(const PlannerInfo* root) {
  constexpr double kDefaultRank = 10;  // if the limit is not known yet
  const Query* const query = root->parse;
  if (list_length(query->windowClause) != 1) return 0;
  const WindowClause* const window = linitial_node(WindowClause, query->windowClause);
  if (window->partitionClause != NIL) return 0;
  double highest = std::numeric_limits<double>::infinity();
  ListCell* cell;
  foreach (cell, query->targetList) {
    const Expr* const value = lfirst_node(TargetEntry, cell)->expr;
    if (!IsA(value, WindowFunc)) continue;
    highest = fmin(highest,
                   highest_rank(window, reinterpret_cast<const WindowFunc*>(value), kDefaultRank));
  }
  return std::isinf(highest) ? 0 : fmax(1, highest) + 1;  // the first row beyond ends it
}

/// Returns the largest number of rows that the plan above takes, or 0 if it takes all.
double most_taken(const PlannerInfo* root) {
  return root->limit_tuples > 0 ? root->limit_tuples : rows_of_window(root);
}

/// How likely the node has to scan the table, because the quals leave too few of the nearest rows.
double chance_of_scan(const SearchPath& path) {
  if (!is_ordered(path.clause) || is_bounded(path.clause) || path.taken == 0) return 0;
  const auto rows = static_cast<std::uint64_t>(path.custom.path.parent->tuples);
  const double share = fmin(1, path.expected / static_cast<double>(most_neighbors(rows)));
  return share * share;  // an estimate near the limit may well be wrong
}

/// Sets the path's rows and costs. Fetching rows costs what it costs an index scan.
void set_search_cost(PlannerInfo* root, const Path* seqscan, SearchPath* path) {
  RelOptInfo* const rel = path->custom.path.parent;
  const SearchClause& clause = path->clause;
  const SimilarityClause& values = values_of(clause);
  Path* const base = &path->custom.path;
  base->rows = base->param_info != nullptr ? base->param_info->ppi_rows : rel->rows;
  if (is_bounded(clause)) base->rows = fmin(base->rows, clamp_row_est(clause.share * rel->tuples));
  const double found = clamp_row_est(is_bounded(clause) ? clause.share * rel->tuples : rel->tuples);
  path->taken = most_taken(root);
  path->expected = is_ordered(clause) && path->taken > 0
                       ? fmin(found, path->taken * fmax(1, found / fmax(base->rows, 1)))
                       : found;
  double page_cost;
  get_tablespace_page_costs(rel->reltablespace, &page_cost, nullptr);
  const double pages = index_pages_fetched(found, rel->pages, rel->pages, root);
  QualCost quals;
  cost_qual_eval(&quals, rel->baserestrictinfo, root);
  const Cost of_all = search_cost(root, rel, values.right, values.test, found);
  const Cost of_first = search_cost(root, rel, values.right, values.test, path->expected);
  const Cost of_row = cpu_tuple_cost + kRowOperators * cpu_operator_cost + quals.per_tuple;
  QualCost computing;
  cost_qual_eval_node(&computing, reinterpret_cast<Node*>(values.right), root);
  const Cost of_reading = seqscan->total_cost + rel->tuples * computing.per_tuple;
  const Cost once = quals.startup + base->pathtarget->cost.startup +
                    (path->is_kept ? 0 : of_reading / kExpectedSearches) +
                    chance_of_scan(*path) * seqscan->total_cost;
  base->startup_cost = once + (is_ordered(clause) ? of_first : of_all);
  base->total_cost = once + of_all + pages * page_cost + found * of_row +
                     base->pathtarget->cost.per_tuple * base->rows;
  // PostgreSQL prices a LIMIT, but not the early end of a window.
  if (is_ordered(clause) && root->limit_tuples <= 0 && path->taken > 0)
    base->total_cost =
        base->startup_cost + (base->total_cost - base->startup_cost) * path->expected / found;
}

Plan* plan_search(PlannerInfo* root, RelOptInfo* rel, CustomPath* custom, List* columns,
                  List* clauses, List*);

const CustomPathMethods kPathMethods = {kSearchName, plan_search, nullptr};

/// Adds the path if the table is kept, or if there will be several searches.
void add_search(PlannerInfo* root, const SearchClause& clause, SearchedTable* table) {
  RelOptInfo* const rel = table->rel;
  const SimilarityClause& values = values_of(clause);
  bool drops_errors;
  if (!is_ordered(clause) && clause.share * rel->tuples > kMaxFound && !prefers_node()) return;
  if (!can_evaluate(root, rel, clause, &drops_errors)) return;
  check_columns(root, values, table);
  if (!table->fits || !(table->is_kept || prefers_node() || is_of_outer_rows(values.left))) return;
  auto* const path = reinterpret_cast<SearchPath*>(newNode(sizeof(SearchPath), T_CustomPath));
  path->clause = clause;
  path->is_kept = table->is_kept;
  path->drops_errors = drops_errors;
  Path* const base = &path->custom.path;
  base->pathtype = T_CustomScan;
  base->parent = rel;
  base->pathtarget = rel->reltarget;
  base->param_info =
      get_baserel_parampathinfo(root, rel, bms_union(clause.outer, rel->lateral_relids));
  if (is_ordered(clause)) base->pathkeys = list_make1(const_cast<PathKey*>(clause.order));
  path->custom.flags = CUSTOMPATH_SUPPORT_PROJECTION;
  path->custom.methods = &kPathMethods;
  set_search_cost(root, table->seqscan, path);
  if (prefers_node()) prefer(base);
  add_path(rel, base);
}

/// Returns the share of rows within a radius, if it was estimated. PostgreSQL's default for any
/// inequality is no estimate. Without one, assumes few rows: if there are many, the node notices
/// after some thousand and scans the table.
Selectivity share_within(const RelOptInfo* rel, const RestrictInfo* info) {
  const bool is_estimated = info->norm_selec >= 0 && info->norm_selec < kDefaultIneqShare;
  return is_estimated ? info->norm_selec : kDefaultNeighbors / rel->tuples;
}

/// Adds the first radius among the table's quals that suits the clause.
void add_radius(PlannerInfo* root, const RelOptInfo* rel, SearchClause* clause) {
  ListCell* cell;
  foreach (cell, rel->baserestrictinfo) {
    RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
    SimilarityClause radius;
    if (!match_radius(root, rel, info, nullptr, &radius) ||
        (is_ordered(*clause) && !are_alike(radius, clause->distance)))
      continue;
    clause->radius = radius;
    clause->share = share_within(rel, info);
    return;
  }
}

/// Adds paths whose value is a column of another relation, for nested loops.
void add_parameterized(PlannerInfo* root, SearchedTable* table) {
  RelOptInfo* const rel = table->rel;
  ListCell* cell;
  foreach (cell, rel->joininfo) {
    RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
    if (!join_clause_is_movable_to(info, rel)) continue;
    SearchClause clause = {};
    clause.outer = bms_difference(info->clause_relids, rel->relids);
    clause.info = info;
    if (!match_radius(root, rel, info, clause.outer, &clause.radius)) continue;
    conditions_of(root);  // estimates the selectivities of join conditions
    clause.share = share_within(rel, info);
    add_search(root, clause, table);
  }
}

/// set_rel_pathlist_hook.
void add_searches(PlannerInfo* root, RelOptInfo* rel, Index rti, RangeTblEntry* entry) {
  if (previous_hook != nullptr) previous_hook(root, rel, rti, entry);
  if (!customscan_enabled() || !is_plain_table(rel, entry) || IS_DUMMY_REL(rel) ||
      contain_volatile_functions(reinterpret_cast<Node*>(rel->baserestrictinfo)))
    return;
  SearchedTable table = {};
  table.rel = rel;
  table.seqscan = find_seqscan(rel);
  if (table.seqscan == nullptr) return;
  SearchClause radius = {};
  add_radius(root, rel, &radius);
  if (is_bounded(radius)) add_search(root, radius, &table);
  SearchClause order = {};
  if (match_order(root, rel, &order)) {
    add_radius(root, rel, &order);
    if (can_start_with_nearest(root, rel, order)) add_search(root, order, &table);
  }
  add_parameterized(root, &table);
}

// ---- Plans

/// Notes for gpu_why() that a plan searches the table.
void note_search(PlannerInfo* root, const RelOptInfo* rel, const SearchClause& clause) {
  if (clause.info != nullptr) note_served(root, clause.info);
  Planning* const planning = planning_of(root);
  const MemoryContext caller = MemoryContextSwitchTo(root->planner_cxt);
  planning->searched =
      bms_add_members(planning->searched, IS_OTHER_REL(rel) ? rel->top_parent_relids : rel->relids);
  MemoryContextSwitchTo(caller);
}

/// CustomPathMethods::PlanCustomPath.
Plan* plan_search(PlannerInfo* root, RelOptInfo* rel, CustomPath* custom, List* columns,
                  List* clauses, List*) {
  const auto* const path = reinterpret_cast<const SearchPath*>(custom);
  const SearchClause& clause = path->clause;
  const SimilarityClause& values = values_of(clause);
  note_search(root, rel, clause);
  SearchPlan plan = {};
  plan.test = values.test;
  plan.radius = is_bounded(clause) ? clause.radius.test : values.test;
  plan.is_ordered = is_ordered(clause);
  plan.is_descending = plan.is_ordered && !is_ascending(clause.order);
  plan.nulls_first = plan.is_ordered && clause.order->pk_nulls_first;
  plan.is_bounded = is_bounded(clause);
  plan.is_kept = path->is_kept;
  plan.searches_first = path->is_kept || prefers_node();
  plan.drops_errors = path->drops_errors;
  plan.expected = path->expected;
  plan.limit = static_cast<std::uint64_t>(path->taken);
  List* const columns_searched = columns_of(rel, values.right);
  plan.is_computed = columns_searched == NIL;
  plan.may_raise = plan.is_computed && !cannot_raise(root, values.right);
  const SearchExpressions expressions = {values.left, plan.is_bounded ? clause.radius.eps : nullptr,
                                         plan.is_ordered ? clause.distance.condition : nullptr,
                                         plan.is_computed ? values.right : nullptr};
  CustomScan* const scan = make_search_scan(plan, columns_searched, expressions);
  scan->flags = custom->flags;
  scan->scan.scanrelid = rel->relid;
  scan->scan.plan.targetlist = columns;
  scan->scan.plan.qual = extract_actual_clauses(clauses, false);
  return &scan->scan.plan;
}

}  // namespace

void install_search_path() {
  install_search_node();
  previous_hook = set_rel_pathlist_hook;
  set_rel_pathlist_hook = add_searches;
}

}  // namespace gpujoin
