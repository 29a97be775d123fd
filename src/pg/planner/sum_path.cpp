#include "pg/planner/sum_path.h"

#include "pg/planner/pair_path.h"
#include "pg/planner/sum_clause.h"
#include "pg/planner/unique_rows.h"

extern "C" {
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"
}

namespace gpujoin {
namespace {

/// As many as the words of an engine's row have room for, whatever they are of.
constexpr int kMostSums = 8;

/// What the query asks of the join.
struct Asked {
  List* clauses;     ///< GROUP BY or DISTINCT
  List* groups;      ///< their expressions
  List* others;      ///< further columns, which are the same for all rows of a group
  List* aggregates;  ///< of Aggref
};

/// `target`: what the step above the join shows.
Asked find_asked(PlannerInfo* root, List* clauses, const PathTarget* target, List* having) {
  Asked asked = {};
  asked.clauses = clauses;
  asked.groups = get_sortgrouplist_exprs(clauses, root->processed_tlist);
  List* rest = NIL;
  ListCell* cell;
  foreach (cell, target->exprs)
    if (!list_member(asked.groups, lfirst(cell))) rest = lappend(rest, lfirst(cell));
  rest = list_concat(rest, list_copy(having));
  List* const used =
      pull_var_clause(reinterpret_cast<Node*>(rest),
                      PVC_INCLUDE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_INCLUDE_PLACEHOLDERS);
  foreach (cell, used) {
    Node* const node = static_cast<Node*>(lfirst(cell));
    if (IsA(node, Aggref))
      asked.aggregates = list_append_unique(asked.aggregates, node);
    else
      asked.others = list_append_unique(asked.others, node);
  }
  return asked;
}

/// Whether all groups, and what is shown of them, are of rows of these relations.
bool are_of(PlannerInfo* root, const Asked& asked, Relids relations) {
  ListCell* other;
  foreach (other, asked.others)
    if (!IsA(lfirst(other), Var)) return false;  // but a GroupingFunc, say
  for (List* const expressions : {asked.groups, asked.others}) {
    ListCell* cell;
    foreach (cell, expressions) {
      Node* const node = below_outer_joins(root, static_cast<Node*>(lfirst(cell)));
      if (!is_of(root, node, relations) || has_placeholders(node)) return false;
    }
  }
  return true;
}

/// Sets *found to the aggregates as the node knows them, of SumClause. False if one is not known.
bool match_sums(PlannerInfo* root, const Asked& asked, const SumJoin& join, List** found) {
  if (list_length(asked.aggregates) > kMostSums) return false;
  List* sums = NIL;
  bool deviates = false;
  ListCell* cell;
  foreach (cell, asked.aggregates) {
    SumClause* const sum = static_cast<SumClause*>(palloc(sizeof(SumClause)));
    if (!match_sum(root, lfirst_node(Aggref, cell), join, sum)) return false;
    deviates = deviates || sum->plan.state == SumState::kFloatDeviation;
    sums = lappend(sums, sum);
  }
  // Aggregates of one argument share a state: that of one of them serves the others.
  foreach (cell, sums) {
    SumState& state = static_cast<SumClause*>(lfirst(cell))->plan.state;
    if (deviates && state == SumState::kFloatAverage) state = SumState::kFloatDeviation;
  }
  *found = sums;
  return true;
}

/// Whether the state of the aggregate is its result, or one that its final function makes it of
/// without a look at the aggregation around it.
bool can_finish(SumState state) {
  return state != SumState::kInt8Sums && state != SumState::kNumericSums &&
         state != SumState::kIntSquares;
}

/// Whether aggregates are of columns that an anti join has only NULLs for.
bool are_of_missing_rows(PlannerInfo* root, const Asked& asked, const PairPath* join) {
  return join->type == JOIN_ANTI &&
         bms_overlap(pull_varnos(root, reinterpret_cast<Node*>(asked.aggregates)),
                     right_relids(join));
}

/// Finds out how the node may add the join's pairs up: for the rows of one side or of the other.
SumsRefusal match_join(PlannerInfo* root, const Asked& asked, const PairPath* join,
                       SumsOfJoin* wanted) {
  *wanted = {};
  wanted->clauses = asked.clauses;
  wanted->groups = asked.groups;
  if (are_of_missing_rows(root, asked, join)) return SumsRefusal::kAggregates;
  SumsRefusal refusal = SumsRefusal::kGroups;
  for (const bool swapped : {false, true}) {
    if (swapped && join->type != JOIN_INNER) break;
    const Relids left = swapped ? right_relids(join) : left_relids(join),
                 right = swapped ? left_relids(join) : right_relids(join);
    if (!are_of(root, asked, left)) continue;
    const bool rows =
        bms_membership(left) == BMS_SINGLETON &&
        is_grouped_by_key(root, find_base_rel(root, bms_singleton_member(left)), asked.clauses);
    wanted->swapped = swapped;
    refusal = match_sums(root, asked, {&join->clause, left, right, rows}, &wanted->sums)
                  ? SumsRefusal::kNone
                  : SumsRefusal::kAggregates;
    if (refusal == SumsRefusal::kNone) break;
  }
  if (refusal != SumsRefusal::kNone) return refusal;
  bool finish = true;
  wanted->finishes = wanted->sums == NIL;  // there is nothing to finish
  ListCell* cell;
  foreach (cell, wanted->sums) {
    const SumClause* const sum = static_cast<SumClause*>(lfirst(cell));
    wanted->finishes = wanted->finishes || sum->aggregate->aggdistinct != NIL;
    finish = finish && can_finish(sum->plan.state);
  }
  return wanted->finishes && !finish ? SumsRefusal::kAggregates : SumsRefusal::kNone;
}

/// Groups, then what else is shown, then states.
PathTarget* make_target(PlannerInfo* root, const PathTarget* shown, const Asked& asked,
                        List* sums) {
  PathTarget* const target = create_empty_pathtarget();
  ListCell* cell;
  foreach (cell, shown->exprs) {
    const Index group = get_pathtarget_sortgroupref(shown, foreach_current_index(cell));
    if (group != 0 && get_sortgroupref_clause_noerr(group, asked.clauses) != nullptr)
      add_column_to_pathtarget(target, static_cast<Expr*>(lfirst(cell)), group);
  }
  add_new_columns_to_pathtarget(target, asked.others);
  foreach (cell, sums)
    add_new_column_to_pathtarget(
        target,
        reinterpret_cast<Expr*>(partial_of(static_cast<SumClause*>(lfirst(cell))->aggregate)));
  return set_pathtarget_cost_width(root, target);
}

SumsRefusal find_refusal(PlannerInfo* root, const Asked& asked, const PairPath* join,
                         SumsOfJoin* wanted) {
  if (!grouping_is_hashable(asked.clauses)) return SumsRefusal::kGroups;
  if (!can_add_up(join)) return SumsRefusal::kConditions;
  return asked.groups == NIL && asked.aggregates == NIL ? SumsRefusal::kAggregates
                                                        : match_join(root, asked, join, wanted);
}

/// The path of the node that adds up, with this target.
Path* make_path(PlannerInfo* root, const PairPath* join, const SumsOfJoin& wanted,
                RelOptInfo* output, PathTarget* target) {
  Path* const path = &make_sum_path(root, join, wanted)->custom.path;
  place_above(path, &join->custom.path, output, target);
  return path;
}

}  // namespace

void add_sum_path(PlannerInfo* root, RelOptInfo* input, RelOptInfo* output,
                  const GroupPathExtraData* extra) {
  const Query* const query = root->parse;
  PairPath* const join = IS_OTHER_REL(output) ? nullptr : find_any_join(input);
  if (join == nullptr) return;
  List* const having = reinterpret_cast<List*>(extra->havingQual);
  const Asked asked = find_asked(root, query->groupClause, output->reltarget, having);
  SumsOfJoin wanted = {};
  const SumsRefusal refusal = query->groupingSets != NIL ? SumsRefusal::kGroupingSets
                                                         : find_refusal(root, asked, join, &wanted);
  if (refusal != SumsRefusal::kNone) {
    const bool makes_pairs = join->type == JOIN_INNER || join->type == JOIN_LEFT;
    if (makes_pairs && query->hasAggs) join->sums_refusal = refusal;
    return;
  }
  wanted.having = having;
  PathTarget* const target = wanted.finishes
                                 ? output->reltarget
                                 : make_target(root, output->reltarget, asked, wanted.sums);
  Path* const states = make_path(root, join, wanted, output, target);
  if (wanted.finishes) return offer_without_pairs(output, states);
  AggClauseCosts costs = {};
  get_agg_clause_costs(root, AGGSPLIT_FINAL_DESERIAL, &costs);
  // Each group comes once, so that its rows need be neither sorted nor hashed.
  AggPath* const finished = create_agg_path(
      root, output, states, output->reltarget, query->groupClause != NIL ? AGG_SORTED : AGG_PLAIN,
      AGGSPLIT_FINAL_DESERIAL, group_clauses(root), having, &costs, states->rows);
  offer_without_pairs(output, &finished->path);
}

void add_distinct_path(PlannerInfo* root, RelOptInfo* input, RelOptInfo* output) {
  const Query* const query = root->parse;
  PairPath* const join =
      IS_JOIN_REL(input) && !query->hasDistinctOn ? find_any_join(input) : nullptr;
  if (join == nullptr) return;
  PathTarget* const target = root->upper_targets[UPPERREL_DISTINCT];
  const Asked asked = find_asked(root, query->distinctClause, target, NIL);
  SumsOfJoin wanted = {};
  if (find_refusal(root, asked, join, &wanted) != SumsRefusal::kNone) return;
  offer_without_pairs(output, make_path(root, join, wanted, output, target));
}

}  // namespace gpujoin
