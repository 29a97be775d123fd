// What the node over two inputs costs, in time and memory, for the planner.
#pragma once

#include "pg/planner/pair_path.h"

namespace gpujoin {

/// What even an empty join costs, threads and the like, in operators.
inline constexpr double kStartOperators = 16000;

/// Whether there is memory for a join of both inputs. *of_values is what it costs to compute the
/// compared values, and that their points or boxes, and an index as large as they are, may be
/// expected to exceed gpujoin.host_memory_limit.
bool has_memory(PlannerInfo* root, const Path* left, const Path* right,
                const SimilarityClause& clause, Cost* of_values);

/// Returns the share of pairs that an engine compares to find `share` of all pairs. It rises with
/// the dimensions.
Selectivity compared_share(PlannerInfo* root, const Path* right, const SimilarityClause& clause,
                           Selectivity share);

/// A join by conditions of which one is the engine's.
struct JoinWork {
  Selectivity found;     ///< share of all pairs that the engine finds
  Selectivity compared;  ///< and that it compares for that
  bool asked;            ///< other conditions are evaluated for what it finds
  Cost of_values;        ///< as of has_memory(), and of keys
};

/// Sets rows and costs of a path that makes pairs. Returns the part of them that PostgreSQL's own
/// joins pay too, without having priced it: reading values that lie out of line.
Cost set_join_cost(PlannerInfo* root, const JoinWork& join, PairPath* path);

/// Sets rows and costs of a path that finds the nearest right rows of each left row, where other
/// conditions leave this share of right rows. False where there is no memory for their points, or
/// for parts of them.
bool set_nearest_cost(PlannerInfo* root, Selectivity share, PairPath* path);

/// Sets the cost of a path that counts the rows of `input` without making them.
void set_counting_cost(Path* path, const Path* input);

/// Makes the path cheaper than PostgreSQL's. Paths of the node stay in the order of their costs.
void prefer(Path* path);

/// PostgreSQL takes costs for equal that differ by a hundredth.
inline constexpr double kClearlyLess = 0.98;

/// Makes the path cost at most so much of what the other one costs.
void undercut(Path* path, const Path* other, double share = kClearlyLess);

}  // namespace gpujoin
