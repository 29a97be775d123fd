// Which joins are asked for the nearest rows alone, though they are written without a limit: what
// stands above ranks the rows of each outer row by a distance, row_number() OVER (PARTITION BY key
// ORDER BY distance), and drops those beyond a rank, or DISTINCT ON (key) keeps the first one.
#pragma once

#include "pg/planner/similarity_clause.h"

namespace gpujoin {

struct RankedClause {
  SimilarityClause distance;  ///< its condition is the distance, without a radius
  SimilarityClause radius;    ///< a condition of the join; null: there is none
  List* conditions;           ///< the others, in PostgreSQL's order
  List* keys;         ///< of SortGroupClause: inner columns that decide among equal distances
  std::int64_t rows;  ///< of an outer row that are wanted
};

/// Sets *clause if nothing is wanted of the join, all of the query's, but the first rows of each
/// row of `outer`. `conditions` are the join's, of RestrictInfo.
bool match_ranks(PlannerInfo* root, const RelOptInfo* join, RelOptInfo* outer,
                 const RelOptInfo* inner, const List* conditions, RankedClause* clause);

}  // namespace gpujoin
