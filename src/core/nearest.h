// The order in which the right points of a nearest-neighbour join come to a left point, and bounds
// on the distance of what lies in a box. For host and device: no allocation, no state.
#pragma once

#include <cfloat>
#include <cstdint>

#include "core/cosine.h"
#include "core/distance.h"
#include "core/portability.h"

namespace gpujoin {

/// A right point as a neighbour of a left one.
struct Neighbor {
  double raw;              ///< its raw distance
  std::uint32_t position;  ///< where an index has it
};

/// What raw distances alone tell about which of two comes first. By L2, those that differ in their
/// last bits may have one root.
enum class RawOrder { kFirst, kSecond, kUnclear };

template <Metric M>
GPUJOIN_HD inline RawOrder order_of_raws(double a, double b) {
  constexpr double kSurely = M == Metric::kL2 ? 1 - 0x1p-50 : 1;
  if (a < b * kSurely) return RawOrder::kFirst;
  return b < a * kSurely ? RawOrder::kSecond : RawOrder::kUnclear;
}

/// The nearer one comes first, of two at one distance the one with the smaller id, and of equal ids
/// the one at the earlier position: one answer, however the points were found. Of raw distances
/// that differ in their last bits only the roots, which are rounded, tell whether the distances
/// differ. `id_of` gives the id at a position.
template <Metric M, class IdOf>
GPUJOIN_HD inline bool neighbor_comes_before(const Neighbor& a, const Neighbor& b,
                                             const IdOf& id_of) {
  const RawOrder order = order_of_raws<M>(a.raw, b.raw);
  if (order != RawOrder::kUnclear) return order == RawOrder::kFirst;
  if (M == Metric::kL2) {
    const double x = sqrt(a.raw), y = sqrt(b.raw);
    if (x != y) return x < y;
  }
  const std::int64_t p = id_of(a.position), q = id_of(b.position);
  return p != q ? p < q : a.position < b.position;
}

/// The same, `ids` by position.
template <Metric M>
GPUJOIN_HD inline bool comes_before(const Neighbor& a, const Neighbor& b, const std::int64_t* ids) {
  return neighbor_comes_before<M>(a, b, [ids](std::uint32_t position) { return ids[position]; });
}

/// The same by a metric that only the caller's data tells. Raw distances are distances but by L2.
inline bool comes_before(Metric metric, const Neighbor& a, const Neighbor& b,
                         const std::int64_t* ids) {
  return metric == Metric::kL2 ? comes_before<Metric::kL2>(a, b, ids)
                               : comes_before<Metric::kL1>(a, b, ids);
}

/// The raw distance of a point and the nearest place of the box [low, high], summed as the
/// definition sums it: no point of the box has a smaller one. Subtraction rounds monotonically, so
/// a coordinate beyond the box's side differs by no less, rounded; squares and sums are monotonic,
/// too.
template <Metric M>
GPUJOIN_HD inline double raw_distance_of_box(const double* point, const double* low,
                                             const double* high, std::uint32_t dims) {
  double raw = 0;
  for (std::uint32_t d = 0; d < dims; ++d) {
    const double x = point[d];
    raw = add_coordinate<M>(raw, x, x < low[d] ? low[d] : x > high[d] ? high[d] : x);
  }
  return raw;
}

/// An upper bound on the raw distances of what may come before a neighbour with this one: by L2 a
/// little more, for the roots of some larger numbers round to its root.
GPUJOIN_HD inline double most_raw_beside(Metric metric, double raw) {
  if (metric != Metric::kL2) return raw;
  const double most = raw * (1 + 0x1p-50) + DBL_MIN;
  return most <= DBL_MAX ? most : DBL_MAX;
}

/// The same for raw distances by L2 of the directions of vectors that are not extreme, by their
/// cosine distance.
GPUJOIN_HD inline double most_direction_raw(double distance, std::uint32_t dims) {
  const double radius = direction_radius(distance, dims);
  return most_raw_beside(Metric::kL2, radius * radius);
}

/// And back: a cosine distance that no two vectors exceed that are not extreme and whose stored
/// directions lie within this distance by the definition of L2. sure_direction_radius() of it is no
/// smaller.
GPUJOIN_HD inline double most_cosine_distance(double directions, std::uint32_t dims) {
  const double apart = (directions + 2 * kStoredDirection * (1 + 0x1p-30)) * (1 + 0x1p-29);
  return (apart * apart / 2 + cosine_margin(dims)) * (1 + 0x1p-40);
}

}  // namespace gpujoin
