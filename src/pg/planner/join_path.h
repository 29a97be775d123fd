// Paths for the node over two inputs, as planning of the steps above joins sees them.
#pragma once

#include "pg/executor/custom_scan.h"
#include "pg/executor/join_plan.h"
#include "pg/planner/similarity_clause.h"

namespace gpujoin {

/// The cheapest path of the relation that is the node's inner join; null when there is none.
CustomPath* find_inner_join(const RelOptInfo* relation);

/// The same of all joins, whose rows have no columns of what only has to exist.
CustomPath* find_any_join(const RelOptInfo* relation);

/// The relations of its inputs, and its condition.
Relids left_relids(const CustomPath* join);
Relids right_relids(const CustomPath* join);
const SimilarityClause& clause_of(const CustomPath* join);

JoinType type_of(const CustomPath* join);

/// Whether the engine may count the join's pairs: it has no condition besides the distance, but
/// for the order of two keys, and those that are keys of its index.
bool can_count(PlannerInfo* root, const CustomPath* join);

/// Whether the node may add up the join's pairs, or the rows of a join that has one for each left
/// row at most.
bool can_add_up(PlannerInfo* root, const CustomPath* join);

/// The path that counts the pairs of `join`, or for `grouped` the pairs of each row of the input
/// whose relation is `group`. `having` filters its rows.
CustomPath* make_counting_path(const CustomPath* join, bool grouped, const RelOptInfo* group,
                               List* having);

/// How the pairs of a join are to be added up.
struct SumsOfJoin {
  List* clauses;  ///< the query's GROUP BY or DISTINCT, of SortGroupClause
  List* groups;   ///< their expressions, of left rows
  List* sums;     ///< of SumClause
  bool swapped;   ///< the join's right rows are the left ones
  bool finishes;  ///< as in JoinPlanData
  List* having;   ///< of the results
};

/// Whether pairs are to be added up at all.
inline bool are_wanted(const SumsOfJoin& sums) { return sums.groups != NIL || sums.sums != NIL; }

/// The path that adds up the pairs of `join`.
CustomPath* make_sum_path(PlannerInfo* root, const CustomPath* join, const SumsOfJoin& sums);

/// Offers a path that makes of a join what other paths of `output` make of its pairs. It is worth
/// its cost however few pairs are expected: costlier paths go, whereas add_path() prefers them
/// where they are sorted and cost a hundredth more. They stay where a step above may want their
/// order.
void offer_without_pairs(const PlannerInfo* root, RelOptInfo* output, Path* path);

/// Notes for EXPLAIN why the pairs of `join` are made, though they are aggregated.
void refuse_sums(CustomPath* join, SumsRefusal reason);

/// The path that emits what may be among the first top.k pairs by a score; null where engines do
/// not know the score. `top` comes with its order: k, lowest_first, ties.
CustomPath* make_top_path(PlannerInfo* root, const CustomPath* join, Expr* score,
                          const TopPlan& top);

}  // namespace gpujoin
