// Paths of the node over two inputs, whatever it makes of them: pairs, numbers of pairs, sums over
// them, the first ones by a score, or the nearest rows of each left row.
#pragma once

#include "pg/executor/custom_scan.h"
#include "pg/executor/join_plan.h"
#include "pg/planner/nearest_clause.h"
#include "pg/planner/score_clause.h"

namespace gpujoin {

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

/// A path with the description of its join. The planner never copies paths, so one may be larger
/// than CustomPath.
struct PairPath {
  CustomPath custom;  // first: PostgreSQL knows no more than this
  JoinType type;
  const RelOptInfo* join;
  SimilarityClause clause;  ///< what the engine compares by; of nearest rows their distance alone
  List* conditions;         ///< of the join, of RestrictInfo
  // Of pairs.
  List* keys;          ///< of the engine's index, of KeyClause
  bool names_matches;  ///< as in JoinPlanData
  bool counts;         ///< as in JoinPlanData
  bool grouped;
  List* having;
  TopPlan top;        ///< as in JoinPlanData, but for the attributes
  ScoreClause score;  ///< of its pairs
  Expr* order;        ///< the score as the query has it
  SumsOfJoin sums;
  SumsRefusal sums_refusal;  ///< why pairs are not added up
  // Of nearest rows.
  NearestClause nearest;  ///< rows: 0 where pairs are wanted
  RelOptInfo* inner;      ///< the LATERAL subquery; null: the rows are those of the second input
  Path* scan;             ///< of its table
  List* distances;        ///< that the node emits for what stands above, of Expr
  int processes;          ///< that share the left rows
};

/// A path of a join over the paths of its inputs; `right` is null where the node has a subquery's
/// scan instead.
PairPath* new_pair_path(RelOptInfo* join, JoinType type, const Path* left, const Path* right);

PairPath* copy_path(const PairPath* path);

/// Whether it is such a path.
bool is_pair_path(const Path* path);

inline PairPath* as_pair_path(CustomPath* path) { return reinterpret_cast<PairPath*>(path); }

const Path* left_input(const PairPath* path);
const Path* right_input(const PairPath* path);
Relids left_relids(const PairPath* path);
Relids right_relids(const PairPath* path);

/// Whether the condition is the join's, and not about rows that an outer join has made.
bool is_of_join(const PairPath& path, const RestrictInfo* condition);

/// CustomPathMethods::PlanCustomPath, of pairs and of nearest rows.
Plan* plan_pairs(PlannerInfo* root, PairPath* path, List* columns, List* inputs);
Plan* plan_nearest(PlannerInfo* root, PairPath* path, List* columns, List* inputs);

/// The cheapest path of the relation that makes pairs of an inner join; null when there is none.
PairPath* find_inner_join(const RelOptInfo* relation);

/// The same of all joins, whose rows have no columns of what only has to exist.
PairPath* find_any_join(const RelOptInfo* relation);

/// Whether the engine may count the join's pairs: it has no condition besides the distance, but
/// for the order of two keys, and those that are keys of its index.
bool can_count(const PairPath* join);

/// Whether the node may add up the join's pairs, or the rows of a join that has one for each left
/// row at most.
bool can_add_up(const PairPath* join);

/// The path that counts the pairs of `join`, or for `grouped` the pairs of each row of the input
/// whose relation is `group`. `having` filters its rows.
PairPath* make_counting_path(PlannerInfo* root, const PairPath* join, bool grouped,
                             const RelOptInfo* group, List* having);

/// The path that adds up the pairs of `join`.
PairPath* make_sum_path(PlannerInfo* root, const PairPath* join, const SumsOfJoin& sums);

/// The path that emits what may be among the first top.k pairs by a score; null where engines do
/// not know the score. `top` comes with its order: k, lowest_first, ties.
PairPath* make_top_path(PlannerInfo* root, const PairPath* join, Expr* score, const TopPlan& top);

/// Puts a path that counts or adds up what `input` would emit among those of `output`: its target,
/// rows and costs.
void place_above(Path* path, const Path* input, RelOptInfo* output, PathTarget* target);

/// Offers a path that makes of a join what other paths of `output` make of its pairs. It is worth
/// its cost however few pairs are expected.
void offer_without_pairs(RelOptInfo* output, Path* path);

}  // namespace gpujoin
