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
  std::size_t places;  ///< of raws, whole tiles
};

/// Adds the distances of the pairs: raw ones, or their square roots.
void add_distances(const SpreadPairs& pairs, bool squared, DoubleSum* sum);

/// Adds a column's numbers of the points of the pairs that are not NaN; returns how many they are.
/// The column may be read up to the end of a tile.
std::uint64_t add_numbers(const SpreadPairs& pairs, const double* column, DoubleSum* sum);

/// The sum of a column's integers of the points of the pairs, modulo 2^64; read likewise.
std::uint64_t sum_integers(const SpreadPairs& pairs, const std::int64_t* column);

}  // namespace gpujoin::cpu
