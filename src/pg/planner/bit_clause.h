// Distances of strings of bits in the words of queries: `length(replace((a # b)::text, '0', ''))`,
// and shares of common bits, `bit_count(a & b)::float8 / bit_count(a | b)`.
#pragma once

#include "pg/planner/similarity_clause.h"

namespace gpujoin {

/// The operands of `a # b`, whose ones the expression counts; NIL: it is another one. Of integers
/// the strings have all their bits.
List* differing_bits(Expr* count);

/// Sets the clause's values and test, the Jaccard distance, where the expression is 1 less it.
bool match_common_share(Expr* expression, SimilarityClause* clause);

}  // namespace gpujoin
