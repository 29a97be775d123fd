// Recognises joins that look for nearest rows. Their inner input is a LATERAL subquery, which sorts
// the rows of one table by the distance from a value of the outer row and has a LIMIT.
#pragma once

#include "pg/planner/refusal.h"
#include "pg/planner/similarity_clause.h"

namespace gpujoin {

/// Describes which rows are wanted for each outer row. Expressions are over columns of the join.
/// Columns of a subquery's table stand there as columns of the subquery, numbered on from its last
/// one.
struct NearestClause {
  SimilarityClause distance;  ///< the distance, without a radius
  SimilarityClause radius;    ///< condition that bounds the distance; radius.condition may be null
  List* conditions;           ///< other conditions on both rows, in PostgreSQL's order
  BoxRule boxes;              ///< relation of both boxes that `conditions` imply
  Expr* limit;                ///< number of rows, int8
  double rows;                ///< estimated value of `limit`
  List* keys;                 ///< of SortGroupClause: further sort keys
  // Only of a LATERAL subquery:
  const RestrictInfo* radius_info;  ///< the radius as the subquery has it
  List* outputs;                    ///< expressions of the subquery's columns
  // These have the subquery's own columns:
  RelOptInfo* table;
  List* columns;          ///< of Var: columns of the table that are used
  Expr* value;            ///< compared value of the table's row
  bool computes;          ///< the node computes `value`, because it may raise an error
  List* scan_conditions;  ///< of RestrictInfo: conditions on the table's row alone
};

/// Sets *clause if `inner` is such a subquery with values of `outer`. Else returns the reason.
Refusal match_nearest(PlannerInfo* root, const RelOptInfo* outer, const RelOptInfo* inner,
                      NearestClause* clause);

/// Whether an expression of the subquery `inner` has a value of the outer row.
bool is_about_outer_row(const RelOptInfo* inner, Expr* expression);

/// The number of the subquery's column that stands for the table's column, from 1.
AttrNumber attribute_of(const PlannerInfo* root, const RelOptInfo* inner, int column);

}  // namespace gpujoin
