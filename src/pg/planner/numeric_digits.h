// How many digits numbers of type numeric have at most, from the precision that columns declare.
// Casts to float8 and arithmetic over few digits cannot leave their range.
#pragma once

#include "pg/compat.h"

namespace gpujoin {

/// Returns true for a call that raises no error whatever digits its numeric arguments have, as far
/// as their types and constants limit them: a cast to float4 or float8, or +, -, * and, by a
/// constant that is not 0, /. Likewise for a cast of an array's elements. False for every other
/// call. The arguments may still raise errors of their own.
bool has_few_digits(Node* call);

}  // namespace gpujoin
