// What is done to the distances and values of the pairs of a run, several at a time.
#pragma once

#include <cstddef>

#include "core/pair_value.h"
#include "cpu/scan/scan.h"

namespace gpujoin::cpu {

/// Puts the square root of each number in its place, rounded as core/distance.h has it.
void take_roots(double* numbers, std::size_t count);

/// Adds the values that are not NaN.
void add_values(const double* values, std::size_t count, DoubleSum* sum);

/// What ScanKernel::spread() wrote of some windows of points.
struct SpreadPairs {
  const Window* windows;
  std::size_t window_count;
  const double* raws;
};

/// What is added up of spread pairs.
struct PlainSum {
  const double* column;   ///< of the points, read up to the end of a tile; null: the distances
  DoubleSum sum;          ///< of its numbers that are not NaN
  std::uint64_t numbers;  ///< how many they are; not told of distances
};

/// Adds up what is told. Distances are the raw ones or, `squared`, their square roots.
void add_up(const SpreadPairs& pairs, bool squared, PlainSum* sums, std::size_t count);

/// The sum of a column's integers of the points of the pairs, modulo 2^64; read likewise.
std::uint64_t sum_integers(const SpreadPairs& pairs, const std::int64_t* column);

}  // namespace gpujoin::cpu
