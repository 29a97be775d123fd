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
  kSine,
  kCosine,
  kArcSine,
  kArcCosine,
  kArcTangent,  ///< of a quotient, in the right quadrant
  kRadians,
  kDegrees,
  kPi,
  kCast,  ///< the number as a type that holds more of them, perhaps rounded
};

/// How two numbers are compared.
enum class Ordering { kNone, kLess, kAtMost, kEqual, kAtLeast, kGreater };

/// Returns what a function of integers, float4, float8 or numeric computes. The type of its result
/// tells the precision.
Arithmetic arithmetic_of(Oid function);

/// Returns true if the function casts between numeric and float8, which rounds and may raise
/// errors.
bool casts_numeric(Oid function);

/// Likewise how a function compares two of them.
Ordering ordering_of(Oid function);

}  // namespace gpujoin
