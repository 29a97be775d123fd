// The values of a key as numbers, and the bounds of their differences.
#pragma once

#include "pg/executor/join_keys.h"
#include "pg/types/number_datum.h"

namespace gpujoin {

inline constexpr double kLargestExact = 0x1p53;  ///< whole numbers up to it are exact

/// -1 or 1 for an infinite date or time, else 0.
int end_of_time(Oid type, Datum value);

/// What rounding may add to a number of this type, relative to it.
double rounding_of(Oid type);

/// A bound of x - y as the conditions have it; for reals a little outside of it.
struct Band {
  bool known;           ///< false: the condition's offset is NULL, or of no known length
  bool exact;           ///< the conditions hold if and only if the difference is within
  bool summed, strict;  ///< some condition is
  __int128 least, most;
  double real_least, real_most;
};

/// The band of a key's bounds, with what their offsets are now.
Band find_band(JoinNode* node, const JoinKey& key);

}  // namespace gpujoin
