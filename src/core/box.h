// Axis-aligned boxes: when two of them meet, and how far apart they are. The definitions that every
// box join answers to.
#pragma once

#include <cstdint>

#include "core/distance.h"
#include "core/portability.h"

namespace gpujoin {

inline constexpr std::uint32_t kMaxBoxDimensions = 8;

// A box of `dims` dimensions is 2 * dims numbers: its low corner, then its high one. Bounds may be
// infinite. Where a bound is NaN or a low one above its high one it is no box, and meets nothing.

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

/// The raw distance (see raw_distance) of two boxes: of their gaps along each dimension, 0 where
/// they overlap in it. The same for (a, b) as for (b, a).
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
};

/// Whether two boxes are a pair. With an eps of 0 bounds are compared: gaps whose squares underflow
/// are still gaps.
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
