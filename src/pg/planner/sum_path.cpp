#include "pg/planner/sum_path.h"

#include "pg/planner/join_estimate.h"
#include "pg/planner/join_path.h"
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
  List* groups;      ///< expressions, in the order of the query's GROUP BY
  List* others;      ///< further columns, which are the same for all rows of a group
  List* aggregates;  ///< of Aggref
};

Asked find_asked(PlannerInfo* root, const RelOptInfo* output, const GroupPathExtraData* extra) {
  Asked asked = {};
  asked.groups = get_sortgrouplist_exprs(root->parse->groupClause, root->processed_tlist);
  List* rest = NIL;
  ListCell* cell;
  foreach (cell, output->reltarget->exprs)
    if (!list_member(asked.groups, lfirst(cell))) rest = lappend(rest, lfirst(cell));
  rest = list_concat(rest, list_copy(reinterpret_cast<List*>(extra->havingQual)));
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

/// The aggregates as the node knows them, of SumClause; NIL where it does not know one.
List* match_sums(PlannerInfo* root, const Asked& asked, const SumJoin& join) {
  if (list_length(asked.aggregates) > kMostSums) return NIL;
  List* sums = NIL;
  bool deviates = false;
  ListCell* cell;
  foreach (cell, asked.aggregates) {
    SumClause* const sum = static_cast<SumClause*>(palloc(sizeof(SumClause)));
    if (!match_sum(root, lfirst_node(Aggref, cell), join, sum)) return NIL;
    deviates = deviates || sum->plan.state == SumState::kFloatDeviation;
    sums = lappend(sums, sum);
  }
  // Aggregates of one argument share a state: that of one of them serves the others.
  foreach (cell, sums) {
    SumState& state = static_cast<SumClause*>(lfirst(cell))->plan.state;
    if (deviates && state == SumState::kFloatAverage) state = SumState::kFloatDeviation;
  }
  return sums;
}

/// Whether the state of the aggregate is its result, or one that its final function makes it of
/// without a look at the aggregation around it.
bool can_finish(SumState state) {
  return state != SumState::kInt8Sums && state != SumState::kNumericSums &&
         state != SumState::kIntSquares;
}

/// Whether aggregates are of columns that an anti join has only NULLs for.
bool are_of_missing_rows(PlannerInfo* root, const Asked& asked, const CustomPath* join) {
  return type_of(join) == JOIN_ANTI &&
         bms_overlap(pull_varnos(root, reinterpret_cast<Node*>(asked.aggregates)),
                     right_relids(join));
}

/// Finds out how the node may add the join's pairs up: for the rows of one side or of the other.
SumsRefusal match_join(PlannerInfo* root, const Asked& asked, const CustomPath* join,
                       SumsOfJoin* wanted) {
  *wanted = {};
  wanted->groups = asked.groups;
  if (are_of_missing_rows(root, asked, join)) return SumsRefusal::kAggregates;
  SumsRefusal refusal = SumsRefusal::kGroups;
  for (const bool swapped : {false, true}) {
    if (swapped && type_of(join) != JOIN_INNER) break;
    const Relids left = swapped ? right_relids(join) : left_relids(join),
                 right = swapped ? left_relids(join) : right_relids(join);
    if (!are_of(root, asked, left)) continue;
    const bool rows = bms_membership(left) == BMS_SINGLETON &&
                      is_grouped_by_key(root, find_base_rel(root, bms_singleton_member(left)),
                                        root->parse->groupClause);
    wanted->swapped = swapped;
    wanted->sums = match_sums(root, asked, {&clause_of(join), left, right, rows});
    if (wanted->sums != NIL) break;
    refusal = SumsRefusal::kAggregates;
  }
  if (wanted->sums == NIL) return refusal;
  bool finish = true;
  ListCell* cell;
  foreach (cell, wanted->sums) {
    const SumClause* const sum = static_cast<SumClause*>(lfirst(cell));
    wanted->finishes = wanted->finishes || sum->aggregate->aggdistinct != NIL;
    finish = finish && can_finish(sum->plan.state);
  }
  return wanted->finishes && !finish ? SumsRefusal::kAggregates : SumsRefusal::kNone;
}

/// Groups, then what else is shown, then states.
PathTarget* make_target(PlannerInfo* root, const RelOptInfo* output, const Asked& asked,
                        List* sums) {
  PathTarget* const target = create_empty_pathtarget();
  const PathTarget* const shown = output->reltarget;
  ListCell* cell;
  foreach (cell, shown->exprs) {
    const Index group = get_pathtarget_sortgroupref(shown, foreach_current_index(cell));
    if (group != 0 && get_sortgroupref_clause_noerr(group, root->parse->groupClause) != nullptr)
      add_column_to_pathtarget(target, static_cast<Expr*>(lfirst(cell)), group);
  }
  add_new_columns_to_pathtarget(target, asked.others);
  foreach (cell, sums)
    add_new_column_to_pathtarget(
        target,
        reinterpret_cast<Expr*>(partial_of(static_cast<SumClause*>(lfirst(cell))->aggregate)));
  return set_pathtarget_cost_width(root, target);
}

SumsRefusal find_refusal(PlannerInfo* root, const Asked& asked, const CustomPath* join,
                         SumsOfJoin* wanted) {
  const Query* const query = root->parse;
  if (query->groupingSets != NIL) return SumsRefusal::kGroupingSets;
  if (!grouping_is_hashable(query->groupClause)) return SumsRefusal::kGroups;
  if (!can_add_up(root, join)) return SumsRefusal::kConditions;
  return match_join(root, asked, join, wanted);
}

double group_count(const RelOptInfo* output) {
  return output->pathlist != NIL ? static_cast<Path*>(linitial(output->pathlist))->rows : 1;
}

}  // namespace

void add_sum_path(PlannerInfo* root, RelOptInfo* input, RelOptInfo* output,
                  const GroupPathExtraData* extra) {
  const Query* const query = root->parse;
  CustomPath* const join = query->hasAggs && !IS_OTHER_REL(output) ? find_any_join(input) : nullptr;
  if (join == nullptr) return;
  const Asked asked = find_asked(root, output, extra);
  SumsOfJoin wanted = {};
  const SumsRefusal refusal = find_refusal(root, asked, join, &wanted);
  if (refusal != SumsRefusal::kNone) {
    const bool makes_pairs = type_of(join) == JOIN_INNER || type_of(join) == JOIN_LEFT;
    if (makes_pairs) refuse_sums(join, refusal);
    return;
  }
  wanted.having = reinterpret_cast<List*>(extra->havingQual);
  CustomPath* const states = make_sum_path(root, join, wanted);
  states->path.parent = output;
  states->path.pathtarget =
      wanted.finishes ? output->reltarget : make_target(root, output, asked, wanted.sums);
  states->path.pathkeys = NIL;
  states->path.rows = group_count(output);
  set_counting_cost(&states->path, &join->path);
  add_disabled_nodes(&states->path, {&join->path});
  if (wanted.finishes) return offer_without_pairs(root, output, &states->path);
  AggClauseCosts costs = {};
  get_agg_clause_costs(root, AGGSPLIT_FINAL_DESERIAL, &costs);
  // Each group comes once, so that its rows need be neither sorted nor hashed.
  AggPath* const finished = create_agg_path(
      root, output, &states->path, output->reltarget,
      query->groupClause != NIL ? AGG_SORTED : AGG_PLAIN, AGGSPLIT_FINAL_DESERIAL,
      group_clauses(root), reinterpret_cast<List*>(extra->havingQual), &costs, states->path.rows);
  offer_without_pairs(root, output, &finished->path);
}

}  // namespace gpujoin
