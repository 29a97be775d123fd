// Paths for the node over two inputs, as planning of the steps above joins sees them.
#pragma once

#include "pg/executor/custom_scan.h"
#include "pg/executor/join_plan.h"
#include "pg/planner/similarity_clause.h"

namespace gpujoin {

/// The cheapest path of the relation that is the node's inner join; null when there is none.
CustomPath* find_inner_join(const RelOptInfo* relation);

/// Whether the engine may count the join's pairs: it has no condition besides the distance, but
/// for the order of two keys.
bool can_count(const CustomPath* join);

/// The path that counts the pairs of `join`, or for `grouped` the pairs of each row of the input
/// whose relation is `group`. `having` filters its rows.
CustomPath* make_counting_path(const CustomPath* join, bool grouped, const RelOptInfo* group,
                               List* having);

/// The path that emits what may be among the first top.k pairs by a score; null where engines do
/// not know the score. `top` comes with its order: k, lowest_first, ties.
CustomPath* make_top_path(PlannerInfo* root, const CustomPath* join, Expr* score,
                          const TopPlan& top);

}  // namespace gpujoin
