// Distances of strings of bits in the words of queries: `length(replace((a # b)::text, '0', ''))`,
// and shares of common bits, `bit_count(a & b)::float8 / bit_count(a | b)`.
#pragma once

#include "pg/planner/similarity_clause.h"

namespace gpujoin {

/// Returns the operands of `a # b` if the expression counts its ones, else NIL. Of integers a
/// string with all their bits is counted.
List* differing_bits(Expr* count);

/// Sets the clause's values and test, the Jaccard distance, where the expression is 1 less it.
bool match_common_share(Expr* expression, SimilarityClause* clause);

}  // namespace gpujoin
