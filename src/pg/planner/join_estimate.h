// What the node over two inputs costs, in time and memory, for the planner.
#pragma once

#include "pg/planner/similarity_clause.h"

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

/// Returns the cost of an engine's comparing `pairs`.
Cost comparing_cost(PlannerInfo* root, const SimilarityClause& clause, double pairs);

/// Returns what reading the values of all rows costs that lie out of line.
Cost detoasting_cost(PlannerInfo* root, const Path* input, const Expr* value);

/// Sets rows and costs of a path that joins `left` and `right` by conditions of which one is the
/// engine's and leaves a share of all pairs; `asked`: conditions are evaluated for each pair of
/// that share.
void set_join_cost(PlannerInfo* root, Path* path, const Path* left, const Path* right,
                   Selectivity share, JoinType type, List* conditions, bool asked, Cost of_values);

/// A search for nearest rows.
struct NearestCost {
  const Path* left;
  const Path* right;
  double k;           ///< rows wanted of each left row
  Selectivity share;  ///< of right rows that other conditions leave
  List* conditions;   ///< evaluated for what is found
  int processes;      ///< that share the memory, each with all right rows
};

/// Sets rows and costs of a path that finds the nearest right rows of each left row. False where
/// there is no memory for their points, or for parts of them. `value` is the right one as `subroot`
/// knows it.
bool set_nearest_cost(PlannerInfo* root, PlannerInfo* subroot, const SimilarityClause& distance,
                      Expr* value, const NearestCost& cost, Path* path);

/// Sets the cost of a path that counts the rows of `input` without making them.
void set_counting_cost(Path* path, const Path* input);

/// Makes the path cheaper than PostgreSQL's. Paths of the node stay in the order of their costs.
void prefer(Path* path);

}  // namespace gpujoin
