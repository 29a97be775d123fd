// Which expressions raise no error, whatever the row. Such expressions may be evaluated for rows,
// or at times, for which PostgreSQL itself would not have evaluated them.
#pragma once

#include "pg/compat.h"

namespace gpujoin {

/// Returns true if evaluating the expression, planned in `root`, raises no error over its values.
/// So for columns, constants and parameters, casts that lose no range, and elements of arrays. So
/// for ARRAY[...], point(x, y), ST_MakePoint(x, y), CASE, COALESCE and tests of such, and for
/// built-in functions that are leakproof. So for casts and arithmetic of numeric columns whose
/// precision is declared. False for other arithmetic, which may leave its range, and for whatever
/// is not known here.
bool cannot_raise(const PlannerInfo* root, Expr* expression);

/// Whether an error that evaluating the expression raises can be dropped and forgotten: besides
/// what can raise none it calls immutable functions of PostgreSQL, gpujoin, cube and pgvector
/// alone, which compute and hold nothing but memory, and casts text to arrays of numbers.
bool can_drop_errors(const PlannerInfo* root, Expr* expression);

/// Whether an error can be dropped where the expression is evaluated within a subtransaction, which
/// takes back whatever a function was at: it calls immutable functions alone, anybody's.
bool can_roll_back_errors(PlannerInfo* root, Expr* expression);

/// Returns true if a node can evaluate the expression for any row: it raises no error, or its
/// errors can be dropped in one of these ways.
bool can_be_evaluated(PlannerInfo* root, Expr* expression);

}  // namespace gpujoin
