// Which columns tell the rows of a relation apart, by its unique indexes.
#pragma once

#include "pg/compat.h"

namespace gpujoin {

/// Whether each row of the relation is a group of its own. Further columns do not split groups, as
/// long as they are the same for one row.
bool is_grouped_by_key(PlannerInfo* root, RelOptInfo* relation, List* clauses);

/// Whether the column, never NULL, tells the rows of these relations apart, as this operator
/// compares its values.
bool is_key(PlannerInfo* root, Relids relations, const Var* column, Oid equality);

}  // namespace gpujoin
