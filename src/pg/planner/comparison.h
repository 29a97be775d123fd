// What conditions on numbers are made of: comparisons, calls, casts to double precision, arrays.
#pragma once

#include "pg/planner/arithmetic.h"

extern "C" {
#include "nodes/primnodes.h"
}

namespace gpujoin {

/// How `distance OP limit` reads, by the function behind the operator.
struct Comparison {
  Oid function;
  bool distance_first;
  bool strict;
};

/// Null: the function compares no numbers of the machine, or not in one of these ways.
const Comparison* find_comparison(Oid function, bool numeric = false);

/// A function call or an operator, which is one too.
bool as_call(Expr* expression, Oid* function, List** arguments);

Expr* argument(List* arguments, int number);

/// Returns what a call computes, and sets its arguments. kNone: it calls another function, or is no
/// call.
Arithmetic as_arithmetic(Expr* expression, List** arguments);

/// The call of a function that makes a float8 of a value.
Expr* cast_by(Oid cast, Expr* value);

/// A number that float8 holds, as float8; null: it is none.
Expr* as_float8(Expr* value);

/// The array of values of float8.
Expr* as_array(List* values);

}  // namespace gpujoin
