// Doubles as unsigned integers in the same order, for atomics that know integers only.
#pragma once

namespace gpujoin::cuda {

__device__ inline unsigned long long ordered_bits(double x) {
  const auto bits = static_cast<unsigned long long>(__double_as_longlong(x));
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}

inline double from_ordered_bits(unsigned long long bits) {
  const unsigned long long raw = bits >> 63 ? bits & ~(1ull << 63) : ~bits;
  double x;
  static_assert(sizeof x == sizeof raw);
  __builtin_memcpy(&x, &raw, sizeof x);
  return x;
}

}  // namespace gpujoin::cuda
