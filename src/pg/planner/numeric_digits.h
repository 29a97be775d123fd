// How many digits numbers of type numeric have at most, from the precision that columns declare.
// Casts to float8 and arithmetic over few digits cannot leave their range.
#pragma once

#include "pg/compat.h"

namespace gpujoin {

/// Returns true if a call raises no error, as far as types and constants limit the digits of its
/// numeric arguments. So for casts to float4 and float8, also of an array's elements. So for +, -,
/// * and for / by a constant that is not 0. Returns false for every other call. The arguments may
/// still raise errors of their own.
bool has_few_digits(Node* call);

}  // namespace gpujoin
