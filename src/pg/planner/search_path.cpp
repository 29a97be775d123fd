// Paths of GpuSimilarityScan, beside PostgreSQL's own scans of a table: for conditions that compare
// a column with a value of no row of the table, and for an order by such a distance. PostgreSQL
// plans what stands above them, so that they serve subqueries, LATERAL, windows and loops.
#include "pg/executor/custom_scan.h"
#include "pg/executor/search_node.h"
#include "pg/planner/conditions.h"
#include "pg/planner/implied_distance.h"
#include "pg/planner/pair_cost.h"
#include "pg/planner/planning.h"
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
#include "utils/spccache.h"
}

namespace gpujoin {
namespace {

/// Tables of fewer rows are scanned in no time.
constexpr double kFewestSearched = 1000;

constexpr double kUnknownShare = 0.333;  // what PostgreSQL takes any inequality for

set_rel_pathlist_hook_type previous_hook = nullptr;

/// What a search of a table is for.
struct SearchClause {
  SimilarityClause distance;  ///< rows are ordered by it; without a test: they are not
  SimilarityClause radius;    ///< likewise
  const PathKey* order;
  Selectivity share;         ///< of the table's rows, within the radius
  Relids outer;              ///< relations whose rows the value and the radius come from
  const RestrictInfo* info;  ///< the condition that compares them; null: there are none
};

bool is_ordered(const SearchClause& clause) { return clause.order != nullptr; }
bool is_bounded(const SearchClause& clause) { return clause.radius.test.type != nullptr; }

const SimilarityClause& values_of(const SearchClause& clause) {
  return is_ordered(clause) ? clause.distance : clause.radius;
}

/// A path, with what its plan needs.
struct SearchPath {
  CustomPath custom;  // first: PostgreSQL knows no more than this
  SearchClause clause;
  bool kept;
  bool drops_errors;
  double wanted;  ///< rows of a search, about
};

// ---- Conditions and orders

/// Whether a search serves the test: nothing but values within a distance of each other fulfils it.
bool is_searchable(const SimilarityTest& test) {
  return !tests_boxes(test) && !test.of_nan && !test.of_null &&
         test.by->metric != Metric::kJaccard && test.by->compared != ValueForm::kProduct &&
         !test.by->of_empty;
}

/// Whether the right value is a column of the table, alone.
bool is_column(const RelOptInfo* rel, const Expr* value) {
  const Node* const node = reinterpret_cast<const Node*>(value);
  return IsA(node, Var) &&
         reinterpret_cast<const Var*>(node)->varno == static_cast<int>(rel->relid) &&
         reinterpret_cast<const Var*>(node)->varattno > 0;
}

/// Whether the radius may be one that engines take, as far as it is known.
bool may_bound(const SimilarityClause& radius) {
  if (!IsA(radius.eps, Const)) return true;
  const auto* const eps = reinterpret_cast<const Const*>(radius.eps);
  return !eps->constisnull &&
         eps_band(radius.test, DatumGetFloat8(eps->constvalue), 1).engine_serves;
}

/// Sets *radius if the condition bounds a distance of the table's column and a value of `outer`, or
/// of no row where that is empty.
bool match_radius(PlannerInfo* root, const RelOptInfo* rel, const RestrictInfo* info, Relids outer,
                  SimilarityClause* radius) {
  return !info->pseudoconstant && info->security_level <= rel->baserestrict_min_security &&
         implied_distance(info->clause, radius) && is_searchable(radius->test) &&
         radius->with == NIL && bind_to_sides(root, outer, rel->relids, radius) &&
         !has_row_radii(*radius) && is_column(rel, radius->right) && may_bound(*radius);
}

/// What a query is to be sorted by, of the table's columns; null: it is something else.
Expr* sorted_expression(const RelOptInfo* rel, const PathKey* key) {
  ListCell* cell;
  foreach (cell, members_of(rel, key->pk_eclass)) {
    const auto* const member = lfirst_node(EquivalenceMember, cell);
    if (bms_equal(member->em_relids, rel->relids)) return member->em_expr;
  }
  return nullptr;
}

/// Sets the clause's distance to the one that the expression is, or rises with, or with `falls`
/// falls with.
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

/// Sets the clause's order to what the query is to be sorted by, where that is a distance.
bool match_order(PlannerInfo* root, const RelOptInfo* rel, SearchClause* clause) {
  if (root->query_pathkeys == NIL || root->qual_security_level > 0) return false;
  const auto* const key = linitial_node(PathKey, root->query_pathkeys);
  Expr* const expression = sorted_expression(rel, key);
  if (expression == nullptr || IsA(expression, Var) ||
      !match_ranked(root, expression, !is_ascending(key), rel->relids, &clause->distance) ||
      !is_searchable(clause->distance.test) || !is_column(rel, clause->distance.right))
    return false;
  clause->order = key;
  return true;
}

/// Whether rows without a distance, which a search does not find, are not wanted first.
bool have_distances(PlannerInfo* root, const RelOptInfo* rel, const SearchClause& clause) {
  return !clause.order->pk_nulls_first || is_bounded(clause) ||
         is_never_null(root, rel, reinterpret_cast<const Var*>(clause.distance.right)->varattno);
}

/// Whether both compare the same values in the same way.
bool are_alike(const SimilarityClause& a, const SimilarityClause& b) {
  return a.test.type == b.test.type && a.test.by->compared == b.test.by->compared &&
         a.test.by->metric == b.test.by->metric && equal(a.left, b.left) && equal(a.right, b.right);
}

// ---- Paths

/// Whether nothing of the table but what a heap's rows have is asked for.
bool is_plain_table(const RelOptInfo* rel, const RangeTblEntry* entry) {
  return (rel->reloptkind == RELOPT_BASEREL || rel->reloptkind == RELOPT_OTHER_MEMBER_REL) &&
         rel->rtekind == RTE_RELATION && !entry->inh && entry->tablesample == nullptr &&
         (entry->relkind == RELKIND_RELATION || entry->relkind == RELKIND_MATVIEW) &&
         (rel->tuples >= kFewestSearched || prefers_node());
}

const Path* find_scan(const RelOptInfo* rel) {
  ListCell* cell;
  foreach (cell, rel->pathlist) {
    const Path* const path = static_cast<const Path*>(lfirst(cell));
    if (path->pathtype == T_SeqScan && path->param_info == nullptr) return path;
  }
  return nullptr;
}

/// Whether the service may have rows of the column, and has them now.
bool find_columns(const PlannerInfo* root, const RelOptInfo* rel, const SimilarityClause& values,
                  bool* kept) {
  const RangeTblEntry* const entry = planner_rt_fetch(rel->relid, const_cast<PlannerInfo*>(root));
  const Relation relation = table_open(entry->relid, NoLock);  // the planner holds a lock
  SideColumns columns;
  const bool known =
      take_value_column(relation, reinterpret_cast<const Var*>(values.right)->varattno,
                        *values.test.type, values.test.by->compared, &columns);
  table_close(relation, NoLock);
  *kept = known && are_kept(columns);
  return known;
}

/// Walker: whether a value is another one in each search, so that there will be several: of the
/// rows of a query around this one, or of a relation that is joined.
bool is_of_rows(Node* node, void* context) {
  if (node == nullptr) return false;
  if (IsA(node, Param)) return reinterpret_cast<Param*>(node)->paramkind == PARAM_EXEC;
  return IsA(node, Var) || walk_expression(node, is_of_rows, context);
}

/// Sets rows and costs. PostgreSQL's costs of fetching rows are those of an index scan.
void set_search_cost(PlannerInfo* root, const Path* scan, SearchPath* path) {
  RelOptInfo* const rel = path->custom.path.parent;
  const SearchClause& clause = path->clause;
  const SimilarityClause& values = values_of(clause);
  Path* const costs = &path->custom.path;
  costs->rows = costs->param_info != nullptr ? costs->param_info->ppi_rows : rel->rows;
  if (is_bounded(clause))
    costs->rows = fmin(costs->rows, clamp_row_est(clause.share * rel->tuples));
  const double found = clamp_row_est(is_bounded(clause) ? clause.share * rel->tuples : rel->tuples);
  path->wanted = is_ordered(clause) && root->limit_tuples > 0
                     ? fmin(found, root->limit_tuples * fmax(1, found / fmax(costs->rows, 1)))
                     : found;
  double page_cost;
  get_tablespace_page_costs(rel->reltablespace, &page_cost, nullptr);
  const double pages = index_pages_fetched(found, rel->pages, rel->pages, root);
  QualCost quals;
  cost_qual_eval(&quals, rel->baserestrictinfo, root);
  const Cost of_all = search_cost(root, rel, values.right, values.test, found);
  const Cost of_first = search_cost(root, rel, values.right, values.test, path->wanted);
  costs->startup_cost =
      quals.startup + costs->pathtarget->cost.startup + (is_ordered(clause) ? of_first : of_all);
  costs->total_cost = quals.startup + costs->pathtarget->cost.startup + of_all + pages * page_cost +
                      found * (cpu_tuple_cost + quals.per_tuple) +
                      costs->pathtarget->cost.per_tuple * costs->rows;
  if (path->kept) return;
  constexpr double kExpectedSearches = 20;
  costs->startup_cost += scan->total_cost / kExpectedSearches;
  costs->total_cost += scan->total_cost / kExpectedSearches;
}

Plan* plan_search(PlannerInfo* root, RelOptInfo* rel, CustomPath* custom, List* columns,
                  List* clauses, List*);

const CustomPathMethods kPathMethods = {kSearchName, plan_search, nullptr};

/// Whether the value and the radius may be computed for each search, though PostgreSQL computes
/// them for rows that fulfil the conditions before; *drops_errors: if their errors are left to it.
/// Where there are no other conditions any row makes it do so.
bool can_compute(PlannerInfo* root, const RelOptInfo* rel, const SearchClause& clause,
                 bool* drops_errors) {
  Expr* const computed = reinterpret_cast<Expr*>(
      list_make2(values_of(clause).left, is_bounded(clause) ? clause.radius.eps : nullptr));
  *drops_errors = false;
  if (cannot_raise(root, computed)) return true;
  if (clause.outer != nullptr) return false;  // PostgreSQL's estimate of the rows might raise them
  *drops_errors = can_drop_errors(root, computed);
  return *drops_errors || list_length(rel->baserestrictinfo) == (is_bounded(clause) ? 1 : 0);
}

void add_search(PlannerInfo* root, RelOptInfo* rel, const Path* scan, const SearchClause& clause) {
  constexpr double kMostFound = 5000;  // of the rows that the service is asked for
  if (!is_ordered(clause) && clause.share * rel->tuples > kMostFound && !prefers_node()) return;
  bool kept, drops_errors;
  if (!can_compute(root, rel, clause, &drops_errors) ||
      !find_columns(root, rel, values_of(clause), &kept) ||
      !(kept || prefers_node() ||
        is_of_rows(reinterpret_cast<Node*>(values_of(clause).left), nullptr)))
    return;
  auto* const path = reinterpret_cast<SearchPath*>(newNode(sizeof(SearchPath), T_CustomPath));
  path->clause = clause;
  path->kept = kept;
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
  set_search_cost(root, scan, path);
  if (prefers_node()) prefer(base);
  add_path(rel, base);
}

/// The share of rows within a radius, as it was estimated before. What nobody knows is taken for
/// few: a search that finds many ends soon, and all rows are scanned.
Selectivity share_within(const RelOptInfo* rel, const RestrictInfo* info) {
  const Selectivity few = kDefaultNeighbors / rel->tuples;
  return info->norm_selec >= 0 && info->norm_selec < kUnknownShare ? info->norm_selec : few;
}

/// The clause of the same search with a radius, where the table's own conditions have one about the
/// same values.
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

/// Offers searches with values of other relations' rows, for nested loops.
void add_parameterized(PlannerInfo* root, RelOptInfo* rel, const Path* scan) {
  ListCell* cell;
  foreach (cell, rel->joininfo) {
    RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
    if (!join_clause_is_movable_to(info, rel)) continue;
    SearchClause clause = {};
    clause.outer = bms_difference(info->clause_relids, rel->relids);
    clause.info = info;
    if (!match_radius(root, rel, info, clause.outer, &clause.radius)) continue;
    conditions_of(root);  // which know what share of pairs they leave
    clause.share = share_within(rel, info);
    add_search(root, rel, scan, clause);
  }
}

/// set_rel_pathlist_hook: offers searches beside PostgreSQL's scans of a table.
void offer_search(PlannerInfo* root, RelOptInfo* rel, Index rti, RangeTblEntry* entry) {
  if (previous_hook != nullptr) previous_hook(root, rel, rti, entry);
  if (!customscan_enabled() || service_preference() == ServicePreference::kOff ||
      !is_plain_table(rel, entry) || IS_DUMMY_REL(rel) ||
      contain_volatile_functions(reinterpret_cast<Node*>(rel->baserestrictinfo)))
    return;
  const Path* const scan = find_scan(rel);
  if (scan == nullptr) return;
  SearchClause radius = {};
  add_radius(root, rel, &radius);
  if (is_bounded(radius)) add_search(root, rel, scan, radius);
  SearchClause order = {};
  if (match_order(root, rel, &order)) {
    add_radius(root, rel, &order);
    if (have_distances(root, rel, order)) add_search(root, rel, scan, order);
  }
  add_parameterized(root, rel, scan);
}

/// Notes for gpu_why() what is searched.
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
  plan.attribute = reinterpret_cast<const Var*>(values.right)->varattno;
  plan.ordered = is_ordered(clause);
  plan.descending = plan.ordered && !is_ascending(clause.order);
  plan.nulls_first = plan.ordered && clause.order->pk_nulls_first;
  plan.bounded = is_bounded(clause);
  plan.kept = path->kept;
  plan.at_once = path->kept || prefers_node();
  plan.drops_errors = path->drops_errors;
  plan.wanted = path->wanted;
  if (root->limit_tuples > 0) plan.most = static_cast<std::uint64_t>(root->limit_tuples);
  const SearchExpressions expressions = {values.left, plan.bounded ? clause.radius.eps : nullptr,
                                         plan.ordered ? clause.distance.condition : nullptr};
  CustomScan* const scan = make_search_scan(plan, expressions);
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
  set_rel_pathlist_hook = offer_search;
}

}  // namespace gpujoin
