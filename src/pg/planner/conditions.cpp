#include "pg/planner/conditions.h"

#include "pg/planner/implied_distance.h"
#include "pg/planner/join_selectivity.h"
#include "pg/planner/planning.h"
#include "pg/types/column_tests.h"

namespace gpujoin {
namespace {

const DistanceCondition* find(const List* conditions, const RestrictInfo* info) {
  ListCell* cell;
  foreach (cell, conditions) {
    const auto* const condition = static_cast<const DistanceCondition*>(lfirst(cell));
    if (condition->info == info) return condition;
  }
  return nullptr;
}

/// Sets the condition's selectivities. For a band of one column PostgreSQL's are no worse, unless
/// statistics know the column.
void estimate(PlannerInfo* root, RestrictInfo* info, const SimilarityClause& matched) {
  int relid = -1;
  while (info->norm_selec < 0 && (relid = bms_next_member(info->clause_relids, relid)) >= 0) {
    const Relids one = bms_make_singleton(relid);
    SimilarityClause clause = matched;
    if (bind_to_sides(root, one, bms_difference(info->clause_relids, one), &clause) &&
        (!is_of_one_column(clause.test) || has_statistics(root, clause)))
      return set_selectivities(root, info, clause);
  }
}

List* match_conditions(PlannerInfo* root) {
  List* found = NIL;
  for (int i = 1; i < root->simple_rel_array_size; ++i) {
    const RelOptInfo* const rel = root->simple_rel_array[i];
    if (rel == nullptr || rel->reloptkind != RELOPT_BASEREL) continue;
    ListCell* cell;
    foreach (cell, rel->joininfo) {
      RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
      DistanceCondition condition = {info, {}};
      if (find(found, info) != nullptr || !implied_distance(info->clause, &condition.clause))
        continue;
      auto* const copy = static_cast<DistanceCondition*>(palloc(sizeof(DistanceCondition)));
      *copy = condition;
      found = lappend(found, copy);
    }
  }
  return found;
}

}  // namespace

const List* conditions_of(PlannerInfo* root) {
  Planning* const planning = planning_of(root);
  if (planning->matched) return planning->conditions;
  const MemoryContext caller = MemoryContextSwitchTo(root->planner_cxt);
  planning->conditions = match_conditions(root);
  planning->matched = true;
  MemoryContextSwitchTo(caller);
  ListCell* cell;
  foreach (cell, planning->conditions) {
    const auto* const condition = static_cast<const DistanceCondition*>(lfirst(cell));
    estimate(root, const_cast<RestrictInfo*>(condition->info), condition->clause);
  }
  return planning->conditions;
}

bool find_condition(PlannerInfo* root, const RelOptInfo* join, const RestrictInfo* info,
                    SimilarityClause* clause) {
  const List* const conditions = conditions_of(root);
  if (conditions == NIL) return false;
  // Partitions have conditions of their own.
  if (IS_OTHER_REL(join)) return implied_distance(info->clause, clause);
  const DistanceCondition* const found = find(conditions, info);
  if (found != nullptr) *clause = found->clause;
  return found != nullptr;
}

}  // namespace gpujoin
