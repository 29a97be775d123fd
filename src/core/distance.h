// The definition of distance (law 1): IEEE double precision, coordinates in column order, no fused
// multiply-add, no reordering. Every engine and every fast path answers to what stands here.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/portability.h"

namespace gpujoin {

enum class Metric : std::int32_t { kL2, kL1, kLInf };

inline constexpr std::uint32_t kMaxDimensions = 16000;

/// Adds one coordinate to a raw distance. Raw distances grow monotonically with every coordinate,
/// so a partial one that exceeds a threshold decides the pair (SHORTC); a NaN, once in, stays.
template <Metric M>
GPUJOIN_HD inline double add_coordinate(double raw, double a, double b) {
  const double difference = add_rounded(a, -b);
  if constexpr (M == Metric::kL2) {
    return add_rounded(raw, multiply_rounded(difference, difference));
  } else if constexpr (M == Metric::kL1) {
    return add_rounded(raw, fabs(difference));
  } else {
    const double magnitude = fabs(difference);
    return magnitude > raw || magnitude != magnitude ? magnitude : raw;
  }
}

/// The raw distance of a[0..dims) and b[0..dims): the sum of squares for L2, the distance itself
/// for the other metrics. Compare it with Threshold::raw. float coordinates are widened exactly.
template <Metric M, class A, class B>
GPUJOIN_HD inline double raw_distance(const A* a, const B* b, std::uint32_t dims) {
  double raw = 0;
  for (std::uint32_t d = 0; d < dims; ++d)
    raw = add_coordinate<M>(raw, static_cast<double>(a[d]), static_cast<double>(b[d]));
  return raw;
}

template <class A, class B>
GPUJOIN_HD inline double raw_distance(Metric metric, const A* a, const B* b, std::uint32_t dims) {
  switch (metric) {
    case Metric::kL1:
      return raw_distance<Metric::kL1>(a, b, dims);
    case Metric::kLInf:
      return raw_distance<Metric::kLInf>(a, b, dims);
    default:
      return raw_distance<Metric::kL2>(a, b, dims);
  }
}

/// The distance that a raw distance stands for; `sqrt` is correctly rounded.
GPUJOIN_HD inline double distance_from_raw(Metric metric, double raw) {
  return metric == Metric::kL2 ? sqrt(raw) : raw;
}

}  // namespace gpujoin
