// PostgreSQL's functions of numbers by what they compute.
#pragma once

#include "pg/compat.h"

namespace gpujoin {

enum class Arithmetic {
  kNone,
  kSum,
  kDifference,
  kProduct,
  kQuotient,
  kNegation,
  kMagnitude,
  kPower,
  kRoot,
  kExponential,
  kCast,  ///< the number as a type that holds more of them, perhaps rounded
};

/// Returns what a function of integers, float4, float8 or numeric computes. The type of its result
/// tells the precision.
Arithmetic arithmetic_of(Oid function);

}  // namespace gpujoin
