#include "pg/planner/missed.h"

#include "pg/planner/column_distance.h"
#include "pg/planner/comparison.h"
#include "pg/planner/conditions.h"
#include "pg/planner/distance_call.h"
#include "pg/planner/implied_distance.h"
#include "pg/planner/planning.h"
#include "pg/planner/similarity_clause.h"
#include "pg/service/join_reports.h"
#include "pg/settings.h"
#include "pg/types/column_tests.h"

extern "C" {
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/ruleutils.h"
}

namespace gpujoin {
namespace {

planner_hook_type previous_planner_hook = nullptr;

/// Mutator: the expression as SQL can show it.
Node* showable(Node* node, void* context) {
  if (node == nullptr) return nullptr;
  if (IsA(node, PlaceHolderVar))
    return showable(reinterpret_cast<Node*>(reinterpret_cast<PlaceHolderVar*>(node)->phexpr),
                    context);
  // ruleutils looks for the plan of an outer row's value. While planning there is none, and
  // PostgreSQL 17 and later crash.
  if (IsA(node, Param) && reinterpret_cast<Param*>(node)->paramkind == PARAM_EXEC) {
    Param* const shown = reinterpret_cast<Param*>(copyObjectImpl(node));
    shown->paramkind = PARAM_EXTERN;
    return reinterpret_cast<Node*>(shown);
  }
  return mutate_expression(node, showable, context);
}

const char* in_sql(const PlannerInfo* root, Expr* expression) {
  PlannedStmt* const statement = makeNode(PlannedStmt);
  statement->rtable = root->parse->rtable;
  List* const names = select_rtable_names_for_explain(statement->rtable, nullptr);
  List* const context = deparse_context_for_plan_tree(statement, names);
  Node* const shown = showable(reinterpret_cast<Node*>(expression), nullptr);
  return deparse_expression(shown, context, true, false);
}

const char* names_of(PlannerInfo* root, Relids relations) {
  const char* names = "";
  int relation = -1;
  while ((relation = bms_next_member(relations, relation)) >= 0) {
    if (root->simple_rel_array[relation] == nullptr) continue;  // an outer join
    const char* const name = planner_rt_fetch(static_cast<Index>(relation), root)->eref->aliasname;
    names = names[0] == '\0' ? name : psprintf("%s, %s", names, name);
  }
  return names;
}

double pairs_of(const PlannerInfo* root, Relids relations) {
  double pairs = 1;
  int relation = -1;
  while ((relation = bms_next_member(relations, relation)) >= 0)
    if (const RelOptInfo* const rel = root->simple_rel_array[relation]) pairs *= rel->rows;
  return pairs;
}

/// A walk that looks for a distance between rows of two relations, or with `alone` between a row
/// and whatever comes from outside the query.
struct Search {
  PlannerInfo* root;
  bool alone;
  Expr* found;
};

bool find_distance(Node* node, void* context) {
  auto* const search = static_cast<Search*>(context);
  if (node == nullptr) return false;
  if (IsA(node, OpExpr) || IsA(node, FuncExpr)) {
    Expr* const expression = reinterpret_cast<Expr*>(node);
    Oid function;
    List* arguments;
    SimilarityClause clause;
    const bool known = as_measure(expression, &function, &arguments) &&
                       (find_test(function, arguments, TestUse::kMeasure, &clause) ||
                        find_test(function, arguments, TestUse::kTest, &clause));
    const bool measures = known || match_column_distance(expression, float8_constant(0), &clause);
    const int relations = measures ? bms_num_members(pull_varnos(search->root, node)) : 0;
    if (search->alone ? relations == 1 && uses_outer_value(node) : relations > 1) {
      search->found = expression;
      return true;
    }
  }
  return walk_expression(node, find_distance, context);
}

Expr* distance_in(PlannerInfo* root, const void* expression, bool alone) {
  Search search = {root, alone, nullptr};
  find_distance(static_cast<Node*>(const_cast<void*>(expression)), &search);
  return search.found;
}

/// Why the clause, which has a distance, implies no radius.
Refusal why_unbounded(Expr* clause) {
  SimilarityClause found;
  if (is_orclause(clause)) {
    ListCell* cell;
    foreach (cell, reinterpret_cast<BoolExpr*>(clause)->args)
      if (implied_distance(static_cast<Expr*>(lfirst(cell)), &found)) return Refusal::kAlternative;
  }
  Comparison comparison;
  if (is_notclause(clause)) return Refusal::kFromBelow;
  if (!as_comparison(clause, &comparison)) return Refusal::kExpression;
  Expr* const turned =
      make_call(F_FLOAT8LE, BOOLOID, list_make2(comparison.greater, comparison.lesser));
  return implied_distance(turned, &found) ? Refusal::kFromBelow : Refusal::kExpression;
}

/// The list of distances in the making.
struct Sightings {
  PlannerInfo* root;
  List* distances;  ///< of SeenDistance*
  List* clauses;    ///< of RestrictInfo: those that were looked at
  Relids bounded;   ///< relations with a condition on a distance
  double least;     ///< pairs of those that are wanted
};

bool are_enough(const Sightings& seen, Relids relations) {
  return pairs_of(seen.root, relations) >= seen.least;
}

/// Whether searches of its one table serve it.
bool is_searched(const Sightings& seen, Relids relations) {
  return bms_membership(relations) == BMS_SINGLETON &&
         bms_overlap(planning_of(seen.root)->searched, relations);
}

void add(Sightings* seen, Expr* shown, Relids relations, bool served, Refusal refusal) {
  if (!are_enough(*seen, relations)) return;
  auto* const distance = static_cast<SeenDistance*>(palloc(sizeof(SeenDistance)));
  const bool searched = is_searched(*seen, relations);
  *distance = {names_of(seen->root, relations),
               in_sql(seen->root, shown),
               served || searched,
               searched,
               customscan_enabled() ? refusal : Refusal::kDisabled,
               pairs_of(seen->root, relations)};
  seen->distances = lappend(seen->distances, distance);
}

/// The conditions that imply a radius. What the planner did with them it has noted.
void add_matched(Sightings* seen, const List* conditions) {
  ListCell* cell;
  foreach (cell, conditions) {
    const auto* const condition = static_cast<const DistanceCondition*>(lfirst(cell));
    auto* const info = const_cast<RestrictInfo*>(condition->info);
    seen->clauses = list_append_unique_ptr(seen->clauses, info);
    if (is_of_one_column(condition->clause.test) && !condition->served) continue;  // a comparison
    seen->bounded = bms_add_members(seen->bounded, info->clause_relids);
    add(seen, info->clause, info->clause_relids, condition->served, condition->refusal);
  }
}

/// The conditions with a distance that implies none, and those of a subquery about a row of the
/// query around it.
void add_unmatched(Sightings* seen, const RelOptInfo* rel) {
  ListCell* cell;
  foreach (cell, rel->joininfo) {
    RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
    if (list_member_ptr(seen->clauses, info) || !are_enough(*seen, info->clause_relids)) continue;
    seen->clauses = lappend(seen->clauses, info);
    if (distance_in(seen->root, info->clause, false) == nullptr) continue;
    seen->bounded = bms_add_members(seen->bounded, info->clause_relids);
    add(seen, info->clause, info->clause_relids, false, why_unbounded(info->clause));
  }
  foreach (cell, are_enough(*seen, rel->relids) ? rel->baserestrictinfo : NIL) {
    RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
    if (distance_in(seen->root, info->clause, true) != nullptr)
      add(seen, info->clause, rel->relids, false, Refusal::kCorrelated);
  }
}

/// The subquery in LATERAL that is planned with this; null: it is another query.
const RelOptInfo* lateral_subquery(const PlannerInfo* root) {
  const PlannerInfo* const parent = root->parent_root;
  for (int i = 1; parent != nullptr && i < parent->simple_rel_array_size; ++i) {
    const RelOptInfo* const rel = parent->simple_rel_array[i];
    if (rel != nullptr && rel->subroot == root) return rel;
  }
  return nullptr;
}

/// The distance from a row of the query around it that a subquery sorts by, and ends after a few.
void add_order(Sightings* seen, const Planning& planning) {
  const Query* const query = seen->root->parse;
  if (query->sortClause == NIL || query->limitCount == nullptr) return;
  Node* const key = get_sortgroupclause_expr(linitial_node(SortGroupClause, query->sortClause),
                                             query->targetList);
  if (!planning.ranked && distance_in(seen->root, key, true) == nullptr) return;
  const bool lateral = lateral_subquery(seen->root) != nullptr;
  add(seen, reinterpret_cast<Expr*>(key), pull_varnos(seen->root, key), planning.ranked,
      !lateral                             ? Refusal::kCorrelated
      : planning.nearest == Refusal::kNone ? Refusal::kNearest
                                           : planning.nearest);
}

/// Distances that are computed of the rows that a query without such a condition joins.
void add_computed(Sightings* seen, Relids joined) {
  const Query* const query = seen->root->parse;
  for (const void* const computed :
       {static_cast<const void*>(query->targetList), static_cast<const void*>(query->havingQual)}) {
    Expr* const distance = distance_in(seen->root, computed, false);
    if (distance == nullptr) continue;
    const Relids relations = pull_varnos(seen->root, reinterpret_cast<Node*>(distance));
    if (bms_is_subset(relations, seen->bounded)) continue;
    add(seen, distance, relations, bms_is_subset(relations, joined), Refusal::kNoCondition);
    return;
  }
}

void add_all(Sightings* seen, const Planning& planning) {
  add_matched(seen, planning.conditions);
  for (int i = 1; i < seen->root->simple_rel_array_size; ++i) {
    const RelOptInfo* const rel = seen->root->simple_rel_array[i];
    if (rel != nullptr && rel->reloptkind == RELOPT_BASEREL) add_unmatched(seen, rel);
  }
  add_order(seen, planning);
  if (are_enough(*seen, seen->root->all_baserels)) add_computed(seen, planning.joined);
}

void report(const SeenDistance& distance, int level) {
  const RefusalWords words = words_of(distance.refusal);
  ereport(level, (errmsg("gpujoin does not serve \"%s\" over %.0f pairs: %s", distance.condition,
                         distance.pairs, words.reason),
                  words.hint[0] != '\0' ? errhint("%s", words.hint) : 0));
}

/// planner_hook.
PlannedStmt* plan(Query* query, const char* text, int options, ParamListInfo parameters) {
  constexpr double kMany = 1e8;
  const std::uint64_t before = plannings_begun();
  PlannedStmt* const planned = previous_planner_hook != nullptr
                                   ? previous_planner_hook(query, text, options, parameters)
                                   : standard_planner(query, text, options, parameters);
  service::JoinCounts counts = {};
  const List* const seen = distances_seen(before, kMany);
  ListCell* cell;
  foreach (cell, seen) {
    const auto& distance = *static_cast<const SeenDistance*>(lfirst(cell));
    if (distance.served) continue;
    ++counts.missed_joins;
    if (miss_report() != MissReport::kOff)
      report(distance, miss_report() == MissReport::kLog ? LOG : NOTICE);
  }
  if (counts.missed_joins > 0) report_join(counts);
  return planned;
}

}  // namespace

List* distances_seen(std::uint64_t after, double pairs) {
  List* distances = NIL;
  for (const Planning* planning = latest_planning(); planning != nullptr;
       planning = planning->next) {
    if (planning->number < after) continue;
    Sightings seen = {const_cast<PlannerInfo*>(planning->root), NIL, NIL, nullptr, pairs};
    add_all(&seen, *planning);
    distances = list_concat(distances, seen.distances);
  }
  return distances;
}

void install_miss_reports() {
  previous_planner_hook = planner_hook;
  planner_hook = plan;
}

}  // namespace gpujoin
