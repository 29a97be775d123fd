// Axis-aligned boxes: when two of them meet, and how far apart they are. The definitions that every
// box join answers to.
#pragma once

#include <cfloat>
#include <cstdint>

#include "core/distance.h"
#include "core/portability.h"
#include "core/threshold.h"

namespace gpujoin {

inline constexpr std::uint32_t kMaxBoxDimensions = 8;

// A box of `dims` dimensions is 2 * dims numbers: its low corner, then its high one. Bounds may be
// infinite. A row with a NaN, or with a low bound above its high one, is no box and meets nothing.

template <class T>
GPUJOIN_HD inline bool is_box(const T* box, std::uint32_t dims) {
  for (std::uint32_t d = 0; d < dims; ++d)
    if (!(box[d] <= box[dims + d])) return false;
  return true;
}

/// Whether two boxes have a point in common; touching counts.
template <class T>
GPUJOIN_HD inline bool boxes_meet(const T* a, const T* b, std::uint32_t dims) {
  for (std::uint32_t d = 0; d < dims; ++d)
    if (!(a[d] <= b[dims + d] && b[d] <= a[dims + d])) return false;
  return true;
}

/// The raw distance (see raw_distance) of two boxes, whose differences are their gaps along each
/// dimension, 0 where they overlap. The same for (a, b) as for (b, a).
template <Metric M, class T>
GPUJOIN_HD inline double box_raw_distance(const T* a, const T* b, std::uint32_t dims) {
  double raw = 0;
  for (std::uint32_t d = 0; d < dims; ++d) {
    const double a_low = a[d], a_high = a[dims + d], b_low = b[d], b_high = b[dims + d];
    if (b_low > a_high)
      raw = add_coordinate<M>(raw, b_low, a_high);
    else if (a_low > b_high)
      raw = add_coordinate<M>(raw, a_low, b_high);
  }
  return raw;
}

/// What two boxes are tested with.
struct BoxTest {
  bool meet;         ///< eps is 0: they have to have a point in common
  Metric metric;     ///< kL2, kL1 or kLInf
  double threshold;  ///< Threshold::raw
  double reach;      ///< how far a box is widened to overlap all its partners; see widened_low()
};

inline BoxTest make_box_test(Metric metric, double eps) {
  const Threshold threshold = make_threshold(metric, eps);
  if (eps == 0) return {true, metric, threshold.raw, 0};
  return {false, metric, threshold.raw, wide_reach(threshold.reach)};
}

// The bounds of a box widened by `reach`, rounded so that the widened box overlaps every partner of
// the box as it was.
//
// A pair has fl(b_low - a_high) <= Threshold::reach =: r wherever there is a gap, for gaps only add
// to a raw distance. So b_low <= a_high + r * (1 + 2^-52) <= a_high + reach; b_low is a double, and
// rounding is monotone, hence b_low <= fl(a_high + reach). Likewise below. Boxes with an infinite
// gap are no pair: an infinite bound stays where it is, also where `reach` itself has overflowed.

GPUJOIN_HD inline double widened_low(double low, double reach) {
  return low <= DBL_MAX ? add_rounded(low, -reach) : low;
}

GPUJOIN_HD inline double widened_high(double high, double reach) {
  return high >= -DBL_MAX ? add_rounded(high, reach) : high;
}

/// Whether two boxes are a pair. With an eps of 0 bounds are compared: gaps whose squares underflow
/// are still gaps.
///
/// Monotone: who passes with a box passes with every box around that one. All gaps are then no
/// wider, and differences, squares, sums and maxima, rounded or not, do not grow where their terms
/// do not. So groups of boxes are tested by the box around them.
template <class T>
GPUJOIN_HD inline bool passes(const BoxTest& test, const T* a, const T* b, std::uint32_t dims) {
  if (test.meet) return boxes_meet(a, b, dims);
  switch (test.metric) {
    case Metric::kL1:
      return box_raw_distance<Metric::kL1>(a, b, dims) <= test.threshold;
    case Metric::kLInf:
      return box_raw_distance<Metric::kLInf>(a, b, dims) <= test.threshold;
    default:
      return box_raw_distance<Metric::kL2>(a, b, dims) <= test.threshold;
  }
}

}  // namespace gpujoin
