// What aggregates have added up so far, and the transition states that PostgreSQL's own aggregates
// make of it: those that workers of a parallel plan hand over, which Finalize combines.
#pragma once

#include "pg/executor/sum_plan.h"

namespace gpujoin {

/// A 128-bit integer in memory that is aligned for 64 bits.
struct WideInteger {
  std::uint64_t low;
  std::int64_t high;

  __int128 value() const { return static_cast<__int128>(high) << 64 | low; }
  void add(__int128 number) {
    const __int128 sum = value() + number;
    low = static_cast<std::uint64_t>(sum);
    high = static_cast<std::int64_t>(sum >> 64);
  }
};

/// Integers, exact for less than 2^64 values that take_integer() accepts: all are smaller than
/// 2^63, those that are squared smaller than 2^31, and numerics have up to 18 digits.
struct IntegerSums {
  WideInteger sum, squares;
};

struct FloatSums {
  DoubleSum sum;
  double deviations;  ///< squared, from the mean
};

/// An aggregate of one group.
struct Tally {
  std::int64_t count;     ///< of values, NULLs left out
  std::int64_t specials;  ///< of them: NaN and infinities
  union {
    IntegerSums integers;
    FloatSums floats;
    std::int64_t extreme;  ///< as order_of_value()
  };
};

/// How an aggregate works on its values.
enum class SumArithmetic { kNone, kIntegers, kSquaredIntegers, kFloats, kLeast, kMost };
SumArithmetic arithmetic_of(SumState state);
inline bool adds_integers(SumArithmetic arithmetic) {
  return arithmetic == SumArithmetic::kIntegers || arithmetic == SumArithmetic::kSquaredIntegers;
}
inline bool is_extreme(SumArithmetic arithmetic) {
  return arithmetic == SumArithmetic::kLeast || arithmetic == SumArithmetic::kMost;
}

/// An integer, or a numeric times 10^scale, which has at most so many digits. False: NaN.
bool take_integer(Oid type, int scale, Datum value, std::int64_t* integer);
/// Whether the type has this integer.
bool is_in_range(Oid type, __int128 integer);
/// Ascending as the type orders its values; NaN comes last.
std::int64_t order_of_value(const SumPlan& sum, Datum value);

void clear_tally(const SumPlan& sum, Tally* tally);
/// Adds a value, so many times.
void add_value(const SumPlan& sum, Tally* tally, Datum value, std::int64_t times);
/// Adds sums of so many values, none of them special.
void add_integers(Tally* tally, std::int64_t count, __int128 sum, __int128 squares);
void add_floats(const SumPlan& sum, Tally* tally, std::int64_t count, const DoubleSum& values,
                double deviations);
void add_extreme(const SumPlan& sum, Tally* tally, std::int64_t count, std::int64_t extreme);

/// The sum of squared deviations from the mean, of a sum and a sum of squares.
double deviations_of(std::int64_t count, const DoubleSum& values, const DoubleSum& squares);

/// The transition state, serialised where aggregates keep a pointer, in the current memory context.
/// Raises the errors of PostgreSQL's own where a sum is out of range.
Datum state_of(const SumPlan& sum, const Tally& tally, bool* is_null);

}  // namespace gpujoin
