// The thresholds of a screen whose radius is each left point's own and shrinks while neighbours are
// found. As in core/tile_screen.h, of which points, rounding and proofs are.
#pragma once

#include <cmath>

#include "core/nearest.h"
#include "core/portability.h"
#include "core/tile_screen.h"

namespace gpujoin {

/// A pair within the left point's radius has |A - B| <= s with s = R + eA + e, e the most of all
/// right points. Hence A.B >= (nA - s^2) / 2 + nB / 2. The computed product is less by at most
/// `accumulation` * (nA + nB) / 2; what the thresholds and their sum round is in kSingle.
inline constexpr double kNearestSingle = 0x1p-22;
inline constexpr double kNearestLeast = 0x1p-100;  // far above what single precision loses near 0

/// What a right point adds to the thresholds of its pairs, from its squared norm.
GPUJOIN_HD inline float nearest_right_threshold(double norm_sq, double accumulation) {
  return static_cast<float>(norm_sq * (0.5 - accumulation - kNearestSingle) - kNearestLeast);
}

/// What a left point adds, whose wanted pairs lie within `reach` in scaled units, errors included.
GPUJOIN_HD inline float nearest_left_threshold(double norm_sq, double reach, double accumulation) {
  const double r = (norm_sq - reach * reach) / 2;
  return static_cast<float>(r - accumulation * norm_sq - kNearestSingle * fabs(r) - kNearestLeast);
}

/// The same where sums start at the negative threshold, as those of tensor cores do: they err by a
/// part of its magnitude, too (core/tile_screen.h).
GPUJOIN_HD inline float nearest_started_threshold(double norm_sq, double reach,
                                                  double accumulation) {
  const double r = (norm_sq - reach * reach) / 2;
  return static_cast<float>(r - accumulation * (norm_sq + 2 * fabs(r)) - kNearestSingle * fabs(r) -
                            kNearestLeast);
}

/// In scaled units, an upper bound on the true distance of the points, or for cosine of the
/// directions of vectors that are not extreme, of every pair whose raw distance is at most `raw`.
GPUJOIN_HD inline double nearest_reach(Metric metric, double raw, std::uint32_t dims,
                                       double scale) {
  constexpr double kMostReach = 0x1p60;
  const double squares = metric == Metric::kCosine ? most_direction_raw(raw, dims) : raw;
  const double reach = true_reach(sqrt(squares) * (1 + 0x1p-50), dims) * scale;
  return reach < kMostReach ? reach : kMostReach;
}

}  // namespace gpujoin
