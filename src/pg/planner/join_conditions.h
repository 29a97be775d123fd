// The conditions of a join, in PostgreSQL's order, and which of them the engine can do. Operands
// that may raise errors are computed where PostgreSQL's own plan would compute them.
#pragma once

#include "pg/executor/join_plan.h"
#include "pg/planner/key_clause.h"
#include "pg/planner/similarity_clause.h"

namespace gpujoin {

/// The conditions of a join, and the order of two keys that one of them tests.
struct Conditions {
  JoinPlanExpressions parts;  ///< but for `eps` and the operands
  List* all;                  ///< those of the join, without parts.where
  KeyOrder order;
  Var* keys[2];   ///< of the outer and the inner side
  BoxRule boxes;  ///< box_rule() of one that has one
};

/// The conditions in the order of order_qual_clauses() [PostgreSQL, createplan.c], which is not
/// exported: by security level, then by cost, else as they stand. A cheap leakproof condition may
/// go first, and of a join's conditions any that may come first there.
List* cheapest_first(PlannerInfo* root, const List* conditions, bool of_join);

/// The conditions, of Expr, that are evaluated before the radius (null: there is none). Where some
/// after the first `before` may raise errors for pairs beyond the radius it is put among them, too.
List* in_order(PlannerInfo* root, List* conditions, int before, Expr* radius);

/// What the condition asks of the boxes of the values that the distance compares.
BoxRule box_rule(PlannerInfo* root, Expr* condition, const SimilarityClause& distance, Relids left,
                 Relids right);

/// Sorts `conditions`, of RestrictInfo, of a join of two sides with these relations: cheapest
/// first, as PostgreSQL evaluates them.
Conditions sort_conditions(PlannerInfo* root, const SimilarityClause& clause, JoinType type,
                           List* conditions, Relids joined, Relids left, Relids right);

/// Whether the engine can count the pairs for which all conditions hold, where both sides are the
/// same rows: there is none besides the clause but an order of keys, and those of `keys`.
bool can_be_counted(const SimilarityClause& clause, const List* conditions, const List* keys,
                    Relids left, Relids right);

/// Whether PostgreSQL's own plan computes both operands for each pair of rows: no other condition
/// comes first, and no pair is left out because others were found.
bool computes_all_operands(const PlannerInfo* root, JoinType type, const List* conditions);

/// Whether both values can be had of rows that no pair asks for: neither raises errors, or they can
/// be dropped until a pair asks.
bool can_have_values(PlannerInfo* root, const SimilarityClause& clause);

/// What becomes of errors of an operand that the node computes; `for_all_rows`: PostgreSQL's own
/// plan would compute it for all rows.
ErrorTrap trap_of(const PlannerInfo* root, Expr* operand, bool for_all_rows);

/// Has the input compute the operand, and returns its column. Else returns 0, and *computed is what
/// the node is to compute, whose errors it may drop in the way of *trap; `for_all_rows`:
/// PostgreSQL's own plan would compute it for all rows.
AttrNumber place_operand(PlannerInfo* root, Plan** input, Expr* operand, bool for_all_rows,
                         Expr** computed, ErrorTrap* trap);

/// Sets the radius of the plan, which may be null, and what its errors may do.
void set_radius(const PlannerInfo* root, Expr* eps, JoinPlanData* data, JoinPlanExpressions* parts);

}  // namespace gpujoin
