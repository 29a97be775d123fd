// The definition of distance for one point and several others at a time, each sum in column order
// as core/distance.h has it.
#pragma once

#include <cstdint>

#include "core/distance.h"

namespace gpujoin::cpu {

/// Pairs whose sums are taken side by side.
inline constexpr std::uint32_t kPairsAtOnce = 8;

/// The raw distances of one point and several others, each by the definition. One sum alone waits
/// for an addition in every column.
template <Metric M, class A, class B>
inline void raw_distances(const A* a, const B* const (&b)[kPairsAtOnce], std::uint32_t dims,
                          double (&raws)[kPairsAtOnce]) {
  double sums[kPairsAtOnce] = {}, a_squares = 0, b_squares[kPairsAtOnce] = {};
  for (std::uint32_t d = 0; d < dims; ++d) {
    const double x = static_cast<double>(a[d]);
    if constexpr (M == Metric::kCosine) a_squares = add_rounded(a_squares, multiply_rounded(x, x));
    for (std::uint32_t i = 0; i < kPairsAtOnce; ++i) {
      const double y = static_cast<double>(b[i][d]);
      if constexpr (M == Metric::kCosine) {
        sums[i] = add_rounded(sums[i], multiply_rounded(x, y));
        b_squares[i] = add_rounded(b_squares[i], multiply_rounded(y, y));
      } else {
        sums[i] = add_coordinate<M>(sums[i], x, y);
      }
    }
  }
  for (std::uint32_t i = 0; i < kPairsAtOnce; ++i)
    raws[i] = M == Metric::kCosine ? cosine_distance(sums[i], a_squares, b_squares[i]) : sums[i];
}

template <class A, class B>
inline void raw_distances(Metric metric, const A* a, const B* const (&b)[kPairsAtOnce],
                          std::uint32_t dims, double (&raws)[kPairsAtOnce]) {
  switch (metric) {
    case Metric::kL1:
      return raw_distances<Metric::kL1>(a, b, dims, raws);
    case Metric::kLInf:
      return raw_distances<Metric::kLInf>(a, b, dims, raws);
    case Metric::kCosine:
      return raw_distances<Metric::kCosine>(a, b, dims, raws);
    default:
      return raw_distances<Metric::kL2>(a, b, dims, raws);
  }
}

}  // namespace gpujoin::cpu
