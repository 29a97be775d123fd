// What PostgreSQL's functions of numbers compute.
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

/// Of integers, float4, float8 and numeric. In which precision it is, the type of the result says.
Arithmetic arithmetic_of(Oid function);

}  // namespace gpujoin
