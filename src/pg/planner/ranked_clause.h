// Which joins are asked for the nearest rows alone, though they are written without a limit: what
// stands above ranks the rows of each outer row by a distance, row_number() OVER (PARTITION BY key
// ORDER BY distance), and drops those beyond a rank, or DISTINCT ON (key) keeps the first one.
#pragma once

#include "pg/planner/nearest_clause.h"

namespace gpujoin {

/// Sets *clause if nothing is wanted of the join, all of the query's, but the first rows of each
/// row of `outer`. `conditions` are the join's, of RestrictInfo.
bool match_ranks(PlannerInfo* root, const RelOptInfo* join, RelOptInfo* outer,
                 const RelOptInfo* inner, const List* conditions, NearestClause* clause);

/// The highest rank that PostgreSQL's conditions on the rows of a window, such as `rank() <= 3`,
/// leave one of its functions; infinity without such a condition. `unknown` stands for a limit that
/// is no constant.
double highest_rank(const WindowClause* window, const WindowFunc* function, double unknown);

}  // namespace gpujoin
