// The definition of distance (law 1): IEEE double precision, coordinates in column order, no fused
// multiply-add, no reordering. Every engine and every fast path answers to what stands here.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "core/portability.h"

namespace gpujoin {

/// kHamming and kJaccard are of bits, whose distances stand in core/hamming.h; all that follows is
/// of points.
enum class Metric : std::int32_t { kL2, kL1, kLInf, kCosine, kHamming, kJaccard };

inline constexpr bool is_of_bits(Metric metric) { return metric >= Metric::kHamming; }

inline constexpr std::uint32_t kMaxDimensions = 16000;

/// Adds one coordinate to a raw distance. Raw distances grow monotonically with every coordinate,
/// so a partial one that exceeds a threshold decides the pair (SHORTC [GPU-Join, section 4.4]); a
/// NaN, once in, stays. Cosine distances are no such sums.
template <Metric M>
GPUJOIN_HD inline double add_coordinate(double raw, double a, double b) {
  static_assert(M != Metric::kCosine);
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

/// 1 - cos of two vectors, from their dot product and the sums of their squares: 0 .. 2, and the
/// same for (a, b) as for (b, a). NaN, which matches nothing, where a vector is zero or anything is
/// not finite on the way. Rounding may leave a vector a little away from itself.
GPUJOIN_HD inline double cosine_distance(double dot, double a_squares, double b_squares) {
  const double norms = multiply_rounded(sqrt(a_squares), sqrt(b_squares));
  const double cosine = dot / norms;
  if (!(norms > 0 && norms <= DBL_MAX && fabs(cosine) <= DBL_MAX)) return static_cast<double>(NAN);
  return add_rounded(1, -(cosine > 1 ? 1 : cosine < -1 ? -1 : cosine));
}

/// Adds up the raw distance of two points, coordinate by coordinate.
template <Metric M>
class RawSum {
 public:
  GPUJOIN_HD void add(double a, double b) { raw_ = add_coordinate<M>(raw_, a, b); }
  GPUJOIN_HD double raw() const { return raw_; }

 private:
  double raw_ = 0;
};

template <>
class RawSum<Metric::kCosine> {
 public:
  GPUJOIN_HD void add(double a, double b) {
    dot_ = add_rounded(dot_, multiply_rounded(a, b));
    a_squares_ = add_rounded(a_squares_, multiply_rounded(a, a));
    b_squares_ = add_rounded(b_squares_, multiply_rounded(b, b));
  }
  GPUJOIN_HD double raw() const { return cosine_distance(dot_, a_squares_, b_squares_); }

 private:
  double dot_ = 0, a_squares_ = 0, b_squares_ = 0;
};

/// The raw distance of a[0..dims) and b[0..dims): the sum of squares for L2, the distance itself
/// for the other metrics. Compare it with Threshold::raw. float coordinates are widened exactly.
template <Metric M, class A, class B>
GPUJOIN_HD inline double raw_distance(const A* a, const B* b, std::uint32_t dims) {
  RawSum<M> sum;
  for (std::uint32_t d = 0; d < dims; ++d)
    sum.add(static_cast<double>(a[d]), static_cast<double>(b[d]));
  return sum.raw();
}

template <class A, class B>
GPUJOIN_HD inline double raw_distance(Metric metric, const A* a, const B* b, std::uint32_t dims) {
  switch (metric) {
    case Metric::kL1:
      return raw_distance<Metric::kL1>(a, b, dims);
    case Metric::kLInf:
      return raw_distance<Metric::kLInf>(a, b, dims);
    case Metric::kCosine:
      return raw_distance<Metric::kCosine>(a, b, dims);
    default:
      return raw_distance<Metric::kL2>(a, b, dims);
  }
}

/// Calls call.operator()<M>() for the metric of an index, which has none of directions: their
/// points are indexed by L2.
template <class Call>
inline auto by_indexed_metric(Metric metric, const Call& call) {
  switch (metric) {
    case Metric::kL1:
      return call.template operator()<Metric::kL1>();
    case Metric::kLInf:
      return call.template operator()<Metric::kLInf>();
    default:
      return call.template operator()<Metric::kL2>();
  }
}

/// The distance that a raw distance stands for; `sqrt` is correctly rounded.
GPUJOIN_HD inline double distance_from_raw(Metric metric, double raw) {
  return metric == Metric::kL2 ? sqrt(raw) : raw;
}

}  // namespace gpujoin
