// What conditions on numbers are made of: comparisons, calls, casts to double precision, arrays.
#pragma once

#include "pg/planner/arithmetic.h"

extern "C" {
#include "nodes/primnodes.h"
}

namespace gpujoin {

/// `lesser <= greater`, or with `strict` `lesser < greater`, of two numbers.
struct Comparison {
  Expr* lesser;
  Expr* greater;
  bool strict;
  bool equal;  ///< `lesser = greater`
};

/// Sets *found if the expression compares numbers in one of these ways.
bool as_comparison(Expr* expression, Comparison* found);

/// A function call or an operator, which is one too.
bool as_call(Expr* expression, Oid* function, List** arguments);

Expr* argument(List* arguments, int number);

/// Returns what a call computes, and sets its arguments. kNone: it calls another function, or is no
/// call.
Arithmetic as_arithmetic(Expr* expression, List** arguments);

/// The call of a function that makes a float8 of a value.
Expr* cast_by(Oid cast, Expr* value);

/// Returns the number as float8, or null if its type has numbers that float8 does not hold.
Expr* as_float8(Expr* value);

/// A constant of float8.
Expr* float8_constant(double number);

/// Sets *number to a finite constant of a number type.
bool read_number(const Expr* value, double* number);

/// A call of one of PostgreSQL's functions.
Expr* make_call(Oid function, Oid result, List* arguments);

CaseWhen* make_when(Expr* test, Expr* result);

/// A CASE of float8.
Expr* make_case(List* whens, Expr* otherwise);

/// The number of float8, and another one in the place of NULL.
Expr* or_default(Expr* number, double otherwise);

/// `value IS NULL`.
Expr* make_null_test(Expr* value);

/// The expression with another one in the place of each occurrence of `part`.
Expr* with_replaced(Expr* expression, const Expr* part, Expr* by);

/// The array of values of float8.
Expr* as_array(List* values);

}  // namespace gpujoin
