// Doubles as unsigned integers in the same order: for atomics, sorts and ranks that know integers
// only.
#pragma once

#include <bit>
#include <cstdint>

#include "core/portability.h"

namespace gpujoin {

inline constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;

/// Ascending in x, which is no NaN; -0 comes before 0.
GPUJOIN_HD inline std::uint64_t ordered_bits(double x) {
#if defined(__CUDA_ARCH__)
  const auto bits = static_cast<std::uint64_t>(__double_as_longlong(x));
#else
  const auto bits = std::bit_cast<std::uint64_t>(x);
#endif
  return bits & kSignBit ? ~bits : bits | kSignBit;
}

/// The double that has these ordered_bits().
GPUJOIN_HD inline double from_ordered_bits(std::uint64_t ordered) {
  const std::uint64_t bits = ordered & kSignBit ? ordered & ~kSignBit : ~ordered;
#if defined(__CUDA_ARCH__)
  return __longlong_as_double(static_cast<long long>(bits));
#else
  return std::bit_cast<double>(bits);
#endif
}

}  // namespace gpujoin
