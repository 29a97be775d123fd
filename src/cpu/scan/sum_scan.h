// What is done to the distances and values of the pairs of a run, several at a time.
#pragma once

#include <cstddef>

#include "core/pair_value.h"

namespace gpujoin::cpu {

/// Puts the square root of each number in its place, rounded as core/distance.h has it.
void take_roots(double* numbers, std::size_t count);

/// Adds the values that are not NaN.
void add_values(const double* values, std::size_t count, DoubleSum* sum);

}  // namespace gpujoin::cpu
