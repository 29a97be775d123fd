// What kernels of points share, for vectors of any length: coordinates on their way into a vector,
// their part of a raw distance, and a mask as bits. Compiled once per instruction set, as the file
// that includes it after Highway: hence the name and the guard that lets it in again for each set,
// which are Highway's.
#if defined(GPUJOIN_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef GPUJOIN_LANES_INL_H
#undef GPUJOIN_LANES_INL_H
#else
#define GPUJOIN_LANES_INL_H
#endif

#include <cstdint>

#include "core/distance.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gpujoin::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// As many of a column's values as there are lanes, float widened exactly. The column is aligned to
/// them.
template <class Lanes, class T>
HWY_INLINE hn::Vec<Lanes> load_column(Lanes lanes, const T* column) {
  if constexpr (sizeof(T) == sizeof(double)) {
    return hn::Load(lanes, column);
  } else {
    return hn::PromoteTo(lanes, hn::Load(hn::Rebind<float, Lanes>(), column));
  }
}

/// Law 1 for as many pairs as there are lanes: what add_coordinate() in core/distance.h does with a
/// difference. Coordinates are finite, or NaN in padding, so differences may overflow but their
/// maximum never has to carry a NaN along.
template <Metric M, class Vector>
HWY_INLINE Vector add_difference(Vector raw, Vector difference) {
  if constexpr (M == Metric::kL2) {
    return hn::Add(raw, hn::Mul(difference, difference));
  } else if constexpr (M == Metric::kL1) {
    return hn::Add(raw, hn::Abs(difference));
  } else {
    return hn::Max(raw, hn::Abs(difference));
  }
}

template <Metric M, class Vector>
HWY_INLINE Vector add_coordinate(Vector raw, Vector a, Vector b) {
  return add_difference<M>(raw, hn::Sub(a, b));
}

/// Bit i is lane i.
template <class Lanes>
HWY_INLINE std::uint32_t bits_of(Lanes lanes, hn::Mask<Lanes> mask) {
  static_assert(hn::MaxLanes(Lanes()) <= 16);
  std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(lanes, mask, bytes);
  return hn::MaxLanes(lanes) <= 8 ? bytes[0] : bytes[0] | std::uint32_t{bytes[1]} << 8;
}

}  // namespace HWY_NAMESPACE
}  // namespace gpujoin::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
