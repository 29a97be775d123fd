// The conditions of a query that compare distances. Each is matched once, however many joins may
// test it; a query without any costs a look at an empty list for each join.
#pragma once

#include "pg/planner/refusal.h"
#include "pg/planner/similarity_clause.h"

namespace gpujoin {

struct DistanceCondition {
  const RestrictInfo* info;
  SimilarityClause clause;  ///< before bind_to_sides()
  Refusal refusal;          ///< why the node has not been planned for it so far
  bool served;
};

/// Returns the conditions of joins, of DistanceCondition*. The first call also sets how selective
/// they are, where nobody else knows better: for `a <-> b <= e` the planner would assume a third,
/// as for any comparison.
const List* conditions_of(PlannerInfo* root);

/// Sets *clause to what the condition of this join compares. False: no distance.
bool find_condition(PlannerInfo* root, const RelOptInfo* join, const RestrictInfo* info,
                    SimilarityClause* clause);

/// Notes why a join does not serve the condition, unless another one came nearer to it.
void note_refusal(PlannerInfo* root, const RestrictInfo* info, Refusal refusal);

/// Notes that a plan searches a table for the rows of another one by this condition.
void note_served(PlannerInfo* root, const RestrictInfo* info);

/// Notes that a plan of the node joins these relations, with all conditions about them.
void note_served(PlannerInfo* root, const RelOptInfo* join);

}  // namespace gpujoin
