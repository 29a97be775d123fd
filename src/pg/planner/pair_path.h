// The path of the node over two inputs, for all operations: pairs, counts, sums, the first pairs by
// a score, and the nearest rows of each left row.
#pragma once

#include "pg/executor/custom_scan.h"
#include "pg/executor/join_plan.h"
#include "pg/planner/nearest_clause.h"
#include "pg/planner/score_clause.h"

namespace gpujoin {

/// The groups and aggregates that the node computes of a join's pairs.
struct SumsOfJoin {
  List* clauses;  ///< the query's GROUP BY or DISTINCT, of SortGroupClause
  List* groups;   ///< their expressions, of left rows
  List* sums;     ///< of SumClause
  bool swapped;   ///< groups are of the join's right rows: its inputs are swapped
  bool finishes;  ///< see JoinPlanData::groups.finishes
  List* having;   ///< conditions on the results
};

/// Returns true if pairs are added up.
inline bool are_wanted(const SumsOfJoin& sums) { return sums.groups != NIL || sums.sums != NIL; }

/// A CustomPath with the description of its join. The planner never copies paths, so ours may be
/// larger than CustomPath.
struct PairPath {
  CustomPath custom;  // first: PostgreSQL knows no more than this
  JoinType type;
  const RelOptInfo* join;
  SimilarityClause clause;  ///< the engine's condition, or for nearest rows their distance
  List* conditions;         ///< of RestrictInfo: all conditions of the join
  // Of pairs.
  List* keys;          ///< of KeyClause: keys of the engine's index
  bool names_matches;  ///< see JoinPlanData
  bool counts;         ///< see JoinPlanData
  bool grouped;        ///< see JoinPlanData
  List* having;        ///< conditions on counts
  TopPlan top;         ///< see JoinPlanData; the attributes are not set yet
  ScoreClause score;   ///< the score that the first pairs are wanted by
  Expr* order;         ///< the score as the query has it
  SumsOfJoin sums;
  SumsRefusal sums_refusal;  ///< reason why pairs are not added up
  // Of nearest rows.
  NearestClause nearest;  ///< nearest.rows is 0 if pairs are wanted
  RelOptInfo* inner;      ///< the LATERAL subquery; null if the second input has the right rows
  Path* scan;             ///< scan of the subquery's table
  List* distances;        ///< of Expr: distances that the node emits for the nodes above
  int processes;          ///< number of processes that share the left rows
};

/// Makes a path over the paths of both inputs. `right` is null if the node scans a subquery's table
/// instead.
PairPath* new_pair_path(RelOptInfo* join, JoinType type, const Path* left, const Path* right);

PairPath* copy_path(const PairPath* path);

/// Returns true if the path is a PairPath.
inline bool is_pair_path(const Path* path) { return is_custom_path(path, NodeForm::kJoin); }

inline PairPath* as_pair_path(CustomPath* path) { return reinterpret_cast<PairPath*>(path); }

const Path* left_input(const PairPath* path);
const Path* right_input(const PairPath* path);
Relids left_relids(const PairPath* path);
Relids right_relids(const PairPath* path);

/// Returns true if the condition decides which rows match. False for a condition of WHERE, which
/// filters the rows of an outer join.
bool is_of_join(const PairPath& path, const RestrictInfo* condition);

/// Make the plan: of pairs, and of nearest rows.
Plan* plan_pairs(PlannerInfo* root, PairPath* path, List* columns, List* inputs);
Plan* plan_nearest(PlannerInfo* root, PairPath* path, List* columns, List* inputs);

/// Returns the cheapest path that makes pairs of an inner join; null if the relation has none.
PairPath* find_inner_join(const RelOptInfo* relation);

/// Returns the cheapest path for any join type; null if the relation has none. Rows of semijoins
/// and anti joins have no right columns.
PairPath* find_any_join(const RelOptInfo* relation);

/// Returns true if the engine can count the join's pairs: besides the distance the join has only
/// conditions that are keys of the index, and at most one comparison of two keys.
bool can_count(const PairPath* join);

/// Returns true if the node can add up the rows of the join: its pairs, or for a semijoin or an
/// anti join the left rows.
bool can_add_up(const PairPath* join);

/// Makes the path that counts the pairs of `join`: all of them, or if `grouped` those of each row
/// of the input whose relation is `group`. `having` filters the counts.
PairPath* make_counting_path(PlannerInfo* root, const PairPath* join, bool grouped,
                             const RelOptInfo* group, List* having);

/// Makes the path that adds up the pairs of `join`.
PairPath* make_sum_path(PlannerInfo* root, const PairPath* join, const SumsOfJoin& sums);

/// Makes the path that emits a superset of the first top.k pairs by a score; null if engines do not
/// know the score. The caller sets k, lowest_first and ties of `top`.
PairPath* make_top_path(PlannerInfo* root, const PairPath* join, Expr* score, const TopPlan& top);

/// Sets parent, target, rows and costs of a path that counts or adds up the rows of `input`.
void place_above(Path* path, const Path* input, RelOptInfo* output, PathTarget* target);

/// Adds a path that computes without pairs what the other paths of `output` compute from pairs. It
/// wins even if few pairs are expected and costs are nearly equal.
void offer_without_pairs(RelOptInfo* output, Path* path);

}  // namespace gpujoin
