// From eps to the numbers that kernels compare with, found once per request, and the margin by
// which a sum taken in another order may differ. Comparisons only: no distance is computed here.
#pragma once

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/distance.h"

namespace gpujoin {

/// The largest finite double x >= 0 for which `holds(x)`. `holds` must hold at 0 and, once false,
/// stay false. Non-negative doubles are ordered like their bit patterns, so 63 halvings find it.
template <class Predicate>
double largest_double(Predicate holds) {
  std::uint64_t low = 0;
  std::uint64_t high = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::max());
  while (low < high) {
    const std::uint64_t middle = low + (high - low + 1) / 2;
    if (holds(std::bit_cast<double>(middle)))
      low = middle;
    else
      high = middle - 1;
  }
  return std::bit_cast<double>(low);
}

struct Threshold {
  double raw;    ///< distance(a, b) <= eps if and only if raw_distance(a, b) <= raw
  double reach;  ///< no coordinate of such a pair differs by more: fl(|a - b|) <= reach
};

/// Widens Threshold::reach so that x - y <= reach, rounded, implies x <= y + wide_reach(reach),
/// exactly and so rounded too: a rounded difference is too small by 2^-53 of itself at most.
GPUJOIN_HD inline double wide_reach(double reach) { return reach * (1.0 + 0x1p-50) + DBL_MIN; }

/// For finite eps >= 0. L2: since sqrt is correctly rounded it is monotone, so "sqrt(s) <= eps" is
/// "s <= raw" for the largest such s. One coordinate alone contributes fl(d * d) to a sum that only
/// grows, so d is bounded by the largest r with fl(r * r) <= raw. That r can exceed eps: where
/// squares underflow, all differences below 2^-537 have distance 0. Cosine: vectors of one
/// direction may differ by any length, so their coordinates bound nothing; the coordinates of their
/// directions do (core/cosine.h).
inline Threshold make_threshold(Metric metric, double eps) {
  if (metric == Metric::kCosine) return {eps, std::numeric_limits<double>::max()};
  if (metric != Metric::kL2) return {eps, eps};
  const double raw = largest_double([eps](double s) { return std::sqrt(s) <= eps; });
  const double reach = largest_double([raw](double r) { return r * r <= raw; });
  return {raw, reach};
}

/// Bounds that decide a pair from a sum taken in any order: above `reject` it is out, at or below
/// `accept` it is in, and between them only the definition decides.
struct ScreenBounds {
  double accept;
  double reject;
};

/// Each of the two sums (ours and the definition's) is the true sum of `dims` non-negative terms
/// times a factor within (1 +- u)^(dims + 2), u = 2^-53: at most dims - 1 additions, one
/// subtraction and one multiplication, whose input is squared, touch a term. Their quotient is
/// therefore within 1 +- 2 (dims + 3) 2u for dims <= 16,000, and underflow adds at most dims *
/// 2^-1074 to either. Max (linf) does not round beyond the subtraction and is the same in every
/// order. Cosine distances are not sums, and have a screen of their own.
inline ScreenBounds make_screen_bounds(Metric metric, double threshold_raw, std::uint32_t dims) {
  if (metric == Metric::kLInf) return {threshold_raw, threshold_raw};
  const double margin = 4.0 * (dims + 4.0) * std::numeric_limits<double>::epsilon();
  const double underflow = 2.0 * dims * std::numeric_limits<double>::denorm_min();
  const double accept = threshold_raw * (1.0 - margin) - underflow;
  return {accept, threshold_raw * (1.0 + margin) + underflow};
}

}  // namespace gpujoin
