#include "pg/planner/conditions.h"

#include "pg/planner/column_distance.h"
#include "pg/planner/comparison.h"
#include "pg/planner/implied_distance.h"
#include "pg/planner/join_selectivity.h"
#include "pg/planner/key_clause.h"
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
        (!is_of_one_column(clause.test) || has_statistics(root, clause))) {
      set_selectivities(root, info, clause);
      ListCell* cell;
      foreach (cell, clause.with) {
        RestrictInfo* const other = lfirst_node(RestrictInfo, cell);
        other->norm_selec = other->outer_selec = 1;  // what they leave is what the first one does
      }
      return;
    }
  }
}

/// Returns the largest magnitude of the offsets of a band between two numbers, or 0 for another
/// key.
double reach_of(const KeyClause& key) {
  double most = 0;
  bool above = false, below = false;
  ListCell* cell;
  foreach (cell, key.expressions.offsets) {
    const KeyBound& bound = key.plan.bounds[foreach_current_index(cell)];
    double offset = 0;
    if (lfirst(cell) != nullptr && !read_number(static_cast<Expr*>(lfirst(cell)), &offset))
      return 0;
    if (bound.type == FLOAT4OID) return 0;
    above = above || bound.form != BoundForm::kLeast;
    below = below || bound.form != BoundForm::kMost;
    most = std::fmax(most, std::fabs(offset));
  }
  return above && below && !key.plan.is_interval ? most : 0;
}

/// The conditions of a base relation that compare its numbers with those of one other relation that
/// comes after it, which several BETWEEN do.
List* comparisons_of(const RelOptInfo* rel, Index other) {
  List* found = NIL;
  ListCell* cell;
  foreach (cell, rel->joininfo) {
    RestrictInfo* const info = lfirst_node(RestrictInfo, cell);
    Comparison comparison;
    if (bms_num_members(info->clause_relids) == 2 &&
        bms_is_member(static_cast<int>(other), info->clause_relids) &&
        as_comparison(info->clause, &comparison) && !comparison.equal)
      found = lappend(found, info);
  }
  return found;
}

/// Boxes around points: `b.x BETWEEN a.x - 1 AND a.x + 1 AND b.y BETWEEN a.y - 2 AND a.y + 2`. Each
/// band is a distance of one column.
void add_bands(PlannerInfo* root, const RelOptInfo* rel, List** found) {
  constexpr int kFewest = 2;
  if (list_length(rel->joininfo) < kFewest) return;
  for (int i = static_cast<int>(rel->relid) + 1; i < root->simple_rel_array_size; ++i) {
    const List* const infos = comparisons_of(rel, static_cast<Index>(i));
    if (list_length(infos) < kFewest) continue;
    const List* const keys = match_keys(
        root, {}, infos, bms_make_singleton(static_cast<int>(rel->relid)), bms_make_singleton(i));
    ListCell* cell;
    foreach (cell, keys) {
      const KeyClause& key = *static_cast<KeyClause*>(lfirst(cell));
      DistanceCondition band = {nullptr, {}, Refusal::kBand, false};
      if (!match_column_band(key.expressions.values[0], key.expressions.values[1], reach_of(key),
                             &band.clause))
        continue;
      band.clause.condition = static_cast<Expr*>(linitial(key.expressions.conditions));
      ListCell* other;
      foreach (other, infos) {
        auto* const info = lfirst_node(RestrictInfo, other);
        if (info->clause == band.clause.condition)
          band.info = info;
        else if (list_member_ptr(key.expressions.conditions, info->clause))
          band.clause.with = lappend(band.clause.with, info);
      }
      auto* const copy = static_cast<DistanceCondition*>(palloc(sizeof(DistanceCondition)));
      *copy = band;
      *found = lappend(*found, copy);
    }
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
      DistanceCondition condition = {info, {}, Refusal::kSides, false};
      if (find(found, info) != nullptr || !implied_distance(info->clause, &condition.clause))
        continue;
      auto* const copy = static_cast<DistanceCondition*>(palloc(sizeof(DistanceCondition)));
      *copy = condition;
      found = lappend(found, copy);
    }
    add_bands(root, rel, &found);
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

void note_refusal(PlannerInfo* root, const RestrictInfo* info, Refusal refusal) {
  auto* const condition = const_cast<DistanceCondition*>(find(conditions_of(root), info));
  if (condition != nullptr) condition->refusal = std::max(condition->refusal, refusal);
}

void note_served(PlannerInfo* root, const RestrictInfo* info) {
  auto* const condition = const_cast<DistanceCondition*>(find(conditions_of(root), info));
  if (condition != nullptr) condition->served = true;
}

void note_served(PlannerInfo* root, const RelOptInfo* join) {
  const Relids joined = IS_OTHER_REL(join) ? join->top_parent_relids : join->relids;
  const List* const conditions = conditions_of(root);
  ListCell* cell;
  foreach (cell, conditions) {
    auto* const condition = static_cast<DistanceCondition*>(lfirst(cell));
    if (bms_is_subset(condition->info->clause_relids, joined)) condition->served = true;
  }
  Planning* const planning = planning_of(root);
  const MemoryContext caller = MemoryContextSwitchTo(root->planner_cxt);
  planning->joined = bms_add_members(planning->joined, joined);
  MemoryContextSwitchTo(caller);
}

}  // namespace gpujoin
