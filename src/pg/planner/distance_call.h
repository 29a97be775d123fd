// Calls that measure a distance, and calls that test one: what they compare.
#pragma once

#include "pg/planner/similarity_clause.h"

namespace gpujoin {

/// Sets the clause's values: a call's first two arguments. Columns of degrees come as numbers, two
/// for each value.
void take_values(List* arguments, SimilarityClause* clause);

/// Sets the clause's test and values where a call uses, in this way, a function that is known.
bool find_test(Oid function, List* arguments, TestUse use, SimilarityClause* clause);

/// Sets what a call that may measure a distance calls; `bit_count(a # b)` is seen as one of a and
/// b.
bool as_measure(Expr* expression, Oid* function, List** arguments);

/// Whether PostGIS's function is 0 for what is empty.
bool measures_extent(Oid function);

/// Returns the radius as float8, a constant if it was one. Returns null for numeric and for what is
/// no number. An int8 that float8 rounds exceeds any number of bits.
Expr* as_radius(Expr* radius);

}  // namespace gpujoin
