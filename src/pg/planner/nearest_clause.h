// What joins look for nearest rows: those whose inner input is a LATERAL subquery that sorts rows
// of one table by their distance to a value of the outer row and keeps the first few.
#pragma once

#include "pg/planner/refusal.h"
#include "pg/planner/similarity_clause.h"

namespace gpujoin {

/// What is wanted of each outer row. Expressions are about columns of the join: those of the outer
/// row, and those of a subquery's table as columns of the subquery that it does not have, numbered
/// on from its last one.
struct NearestClause {
  SimilarityClause distance;  ///< the distance alone; a radius stands below
  SimilarityClause radius;    ///< the condition that bounds it, or null
  List* conditions;           ///< other conditions on both rows, in PostgreSQL's order
  BoxRule boxes;              ///< how boxes must lie for these to hold
  Expr* limit;                ///< int8
  double rows;                ///< estimated value of the limit
  List* keys;                 ///< of SortGroupClause: what decides among equal distances
  // Of a LATERAL subquery.
  const RestrictInfo* radius_info;  ///< the radius in the subquery's terms
  List* outputs;                    ///< what the subquery's columns are, in their order
  // In the subquery's own terms.
  RelOptInfo* table;
  List* columns;          ///< of Var: the table's columns that are used
  Expr* value;            ///< that is compared
  bool computes;          ///< the node computes the value, which may raise an error
  List* scan_conditions;  ///< of RestrictInfo: about the table's rows alone
};

/// Sets *clause if `inner` is such a subquery of rows of `outer`. Returns why it is not.
Refusal match_nearest(PlannerInfo* root, const RelOptInfo* outer, const RelOptInfo* inner,
                      NearestClause* clause);

/// Whether an expression of the subquery `inner` has a value of the outer row.
bool is_about_outer_row(const RelOptInfo* inner, Expr* expression);

/// The number of the subquery's column that stands for the table's column, from 1.
AttrNumber attribute_of(const PlannerInfo* root, const RelOptInfo* inner, int column);

}  // namespace gpujoin
