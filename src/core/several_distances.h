// The definition of distance for one point and several others at a time, each sum in column order
// as core/distance.h has it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/distance.h"

namespace gpujoin {

/// Pairs whose sums are taken side by side.
inline constexpr std::uint32_t kPairsAtOnce = 8;

/// The raw distances of one point and several others, each by the definition. One sum alone waits
/// for an addition in every column. If all sums exceed `most`, they end early: the results are then
/// only known to exceed it. (No later column makes a sum smaller, but cosine distances are no
/// sums.)
template <Metric M, class A, class B>
inline void raw_distances(const A* a, const B* const (&b)[kPairsAtOnce], std::uint32_t dims,
                          double most, double (&raws)[kPairsAtOnce]) {
  constexpr std::uint32_t kColumnsAtOnce = 64;
  double sums[kPairsAtOnce] = {}, a_squares = 0, b_squares[kPairsAtOnce] = {};
  for (std::uint32_t first = 0; first < dims; first += kColumnsAtOnce) {
    const std::uint32_t end = std::min(dims, first + kColumnsAtOnce);
    for (std::uint32_t d = first; d < end; ++d) {
      const double x = static_cast<double>(a[d]);
      if constexpr (M == Metric::kCosine)
        a_squares = add_rounded(a_squares, multiply_rounded(x, x));
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
    if (M != Metric::kCosine &&
        std::all_of(sums, sums + kPairsAtOnce, [most](double sum) { return sum > most; }))
      break;
  }
  for (std::uint32_t i = 0; i < kPairsAtOnce; ++i)
    raws[i] = M == Metric::kCosine ? cosine_distance(sums[i], a_squares, b_squares[i]) : sums[i];
}

template <class A, class B>
inline void raw_distances(Metric metric, const A* a, const B* const (&b)[kPairsAtOnce],
                          std::uint32_t dims, double most, double (&raws)[kPairsAtOnce]) {
  switch (metric) {
    case Metric::kL1:
      return raw_distances<Metric::kL1>(a, b, dims, most, raws);
    case Metric::kLInf:
      return raw_distances<Metric::kLInf>(a, b, dims, most, raws);
    case Metric::kCosine:
      return raw_distances<Metric::kCosine>(a, b, dims, most, raws);
    default:
      return raw_distances<Metric::kL2>(a, b, dims, most, raws);
  }
}

/// The same for `count` others, other(0) and so on.
template <class T, class Other>
inline void raw_distances(Metric metric, const T* a, std::size_t count, const Other& other,
                          std::uint32_t dims, double* raws,
                          double most = std::numeric_limits<double>::infinity()) {
  if (count == 1) {
    raws[0] = raw_distance(metric, a, other(0), dims);
    return;
  }
  for (std::size_t first = 0; first < count; first += kPairsAtOnce) {
    const T* b[kPairsAtOnce];
    double found[kPairsAtOnce];
    for (std::size_t i = 0; i < kPairsAtOnce; ++i) b[i] = other(std::min(first + i, count - 1));
    raw_distances(metric, a, b, dims, most, found);
    std::copy_n(found, std::min<std::size_t>(kPairsAtOnce, count - first), raws + first);
  }
}

}  // namespace gpujoin
