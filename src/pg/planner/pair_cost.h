// The cost of the node over two inputs: one function for all operations.
#pragma once

#include "pg/planner/pair_path.h"

namespace gpujoin {

/// Cost of an empty join, such as starting threads, in cpu_operator_cost.
inline constexpr double kStartOperators = 16000;

/// Returns true if there is memory for a join of both inputs. Sets *of_values to the cost of
/// computing the compared values, and of writing them to files if values and index are expected to
/// exceed gpujoin.host_memory_limit.
bool has_memory(PlannerInfo* root, const Path* left, const Path* right,
                const SimilarityClause& clause, Cost* of_values);

/// Returns the share of pairs that an engine compares to find `share` of all pairs. It rises with
/// the dimensions.
Selectivity compared_share(PlannerInfo* root, const Path* right, const SimilarityClause& clause,
                           Selectivity share);

/// Estimates of a join, for its cost.
struct JoinWork {
  Selectivity found;     ///< share of all pairs that the engine finds
  Selectivity compared;  ///< share of all pairs that the engine compares
  bool asked;            ///< conditions are evaluated for each pair found
  Cost of_values;        ///< cost of values, by has_memory(), and of keys
};

/// Sets rows and costs of a path that makes pairs. Returns the cost of detoasting the values of a
/// pair. PostgreSQL's own joins pay it for each pair, but do not price it.
Cost set_join_cost(PlannerInfo* root, const JoinWork& join, PairPath* path);

/// Sets rows and costs of a path that finds nearest rows. `share`: selectivity of the other
/// conditions on both rows. Returns false if there is no memory for the right rows, not even for
/// parts of them.
bool set_nearest_cost(PlannerInfo* root, Selectivity share, PairPath* path);

/// Returns the cost of one search that finds `found` rows of a table.
Cost search_cost(PlannerInfo* root, const RelOptInfo* table, const Expr* value,
                 const SimilarityTest& test, double found);

/// Sets the cost of a path that counts the rows of `input` without making them.
void set_counting_cost(Path* path, const Path* input);

/// Makes the path cheaper than any path of PostgreSQL's, for gpujoin.prefer_node. The order of the
/// node's own paths stays.
void prefer(Path* path);

/// Factor between costs that add_path() does not take for equal, as it does within 1 %.
inline constexpr double kClearlyLess = 0.98;

/// Lowers the path's costs to at most `factor` times those of the other path: the total cost, and
/// the cost of a share of the rows.
void undercut(Path* path, const Path* other, double factor = kClearlyLess, double share = 1);

}  // namespace gpujoin
