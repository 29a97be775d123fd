// Deciding pairs from dot products in low precision: how points are quantised, the thresholds that
// a dot product is compared with, and why no pair is lost. Matrix arithmetic itself is the
// engines'.
//
// Points are centred and scaled, y = s * (x - c), every coordinate is cut to what low precision
// holds and rounded to half or single precision. Cutting is projecting on a cube, which moves no
// two points further apart, so it rejects no pair; a point that it moved is never accepted unseen.
// Write A and B for two rounded points, n for a squared norm, e for an upper bound on the length of
// what rounding changed. Then |A - B| differs from the distance of the scaled and cut points by at
// most eA + eB, and |A - B|^2 = nA + nB - 2 A.B, so that comparing a distance with a radius is
// comparing A.B with a sum of two numbers, one of each point. A pair that is neither certainly
// within eps nor certainly out is decided by core/distance.h.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "core/portability.h"

namespace gpujoin {

/// Points of a tile; a multiple of what engines' kernels work on.
inline constexpr std::uint32_t kScreenTile = 128;

/// The factor by which a relative error of 2^-53 in each step may move a distance of `dims` terms.
GPUJOIN_HD inline double distance_margin(std::uint32_t dims) { return (dims + 8.0) * DBL_EPSILON; }

/// An upper bound on the true distance of every pair that the definition finds within eps:
/// differences and squares are rounded dims + 2 times and terms below 2^-1074 are lost.
GPUJOIN_HD inline double true_reach(double eps, std::uint32_t dims) {
  return eps * (1 + distance_margin(dims)) + sqrt(static_cast<double>(dims)) * 0x1p-536;
}

/// Radii of the screen, in scaled units.
struct ScreenRadius {
  double reject;  ///< beyond it no pair is within eps by the definition
  double accept;  ///< up to it every pair is; negative: no pair surely is
};

/// `scale` is a power of two. Squares of differences above 2^511 may overflow in the definition, so
/// nothing that far apart is accepted unseen; radii above 2^60, where scaled coordinates are at
/// most kMostScaled, decide nothing and are cut to that.
GPUJOIN_HD inline ScreenRadius make_screen_radius(double eps, std::uint32_t dims, double scale) {
  constexpr double kMost = 0x1p60;
  const double reject = true_reach(eps, dims) * scale;
  const double safe_eps = eps < 0x1p510 ? eps : 0x1p510;
  const double accept =
      (safe_eps * (1 - distance_margin(dims)) - sqrt(static_cast<double>(dims)) * 0x1p-536) * scale;
  return {reject < kMost ? reject : kMost, accept < kMost ? accept : kMost};
}

/// The same where pairs are surely wanted up to another distance only; negative: none surely is.
GPUJOIN_HD inline ScreenRadius make_screen_radius(double eps, double sure_eps, std::uint32_t dims,
                                                  double scale) {
  const double accept = sure_eps < 0 ? -1 : make_screen_radius(sure_eps, dims, scale).accept;
  return {make_screen_radius(eps, dims, scale).reject, accept};
}

/// The power of two that brings magnitudes of up to `most` to [2^13, 2^14], which half precision
/// can hold and whose squares single precision can add up.
GPUJOIN_HD inline double screen_scale(double most) {
  if (!(most > 0)) return 1;
  int exponent;
  frexp(most, &exponent);  // most is below 2^exponent
  exponent = 14 - exponent;
  return ldexp(1.0, exponent < 1000 ? exponent : 1000);
}

/// Scaled coordinates are cut to this magnitude, a power of two that half precision has.
inline constexpr double kMostScaled = 0x1p14;

/// The scale of coordinates most of which lie up to 2 * `half` from their centres: given as halves,
/// since differences of coordinates near DBL_MAX overflow. Scaled, these coordinates come to 2^10
/// at most, so that nothing is cut that lies less than 16 times as far away. `largest` is the
/// magnitude of the centres, which do not overflow when scaled, whatever the other columns are.
GPUJOIN_HD inline double centred_scale(double half, double largest) {
  const double most = ldexp(1.0, 1000 - ilogb(largest > 1 ? largest : 1.0));
  const double scale = screen_scale(half) / 32;
  return scale < most ? scale : most;
}

/// A coordinate, centred and scaled, not cut yet; rounded once, but for what scaling makes smaller
/// than 2^-1074. Differences of coordinates near DBL_MAX overflow; scaling first does not, unless x
/// lies so far away that the infinity, too, is cut to the right end.
GPUJOIN_HD inline double centred(double x, double center, double scale) {
  return add_rounded(multiply_rounded(x, scale), -multiply_rounded(center, scale));
}

GPUJOIN_HD inline double cut_to_screen(double y) {
  return y > kMostScaled ? kMostScaled : y < -kMostScaled ? -kMostScaled : y;
}

/// e of a point: from the sum of squares of what rounding the cut coordinates to low precision
/// changed, which is known exactly, and the squared norm n. The last two terms are for the rounding
/// in centred(), of which cutting leaves 2^-53 of the coordinate at most: rounding is monotone, so
/// what was to be cut is, or is kMostScaled itself.
GPUJOIN_HD inline double quantization_error(double squares, double norm_sq) {
  return sqrt(squares) * (1 + 0x1p-20) + sqrt(norm_sq) * 0x1p-51 + 0x1p-400;
}

/// The radius for the pairs of a point, which was cut or not.
GPUJOIN_HD inline ScreenRadius radius_of_point(ScreenRadius radius, bool cut) {
  if (cut) radius.accept = -1;
  return radius;
}

/// What a point adds to the thresholds of its pairs.
struct ScreenThresholds {
  float reject;  ///< t: a pair with A.B < tA + tB is not within eps
  float accept;  ///< m: a pair with A.B - tA - tB >= mA + mB is; infinite: none surely is
};

/// The error of a dot product is at most `accumulation` * (|A| |B| + |t|), when its accumulator
/// starts at -tA. Where it starts at 0 and is compared with tA + tB, rounded, what that rounds is
/// covered by kSingle.
///
/// Reject. A pair within eps has |A - B| <= R + eA + eB, whose square is at most R^2 + (2 R eA + 2
/// eA^2) + (2 R eB + 2 eB^2). Hence A.B >= rA + rB with r = (n - R^2 / 2) / 2 - R e - e^2. The
/// computed product is less by at most accumulation * ((nA + nB) / 2 + |tA|), because |A| |B| <=
/// (nA + nB) / 2; t is r less accumulation * (n + 2 |r|), which covers that, and less what rounding
/// t to single precision may add.
///
/// Accept. |A - B|^2 <= Q^2 - 2 Q (eA + eB) implies |A - B| <= Q - eA - eB: the right side is at
/// most (Q - eA - eB)^2, and not negative only if eA + eB <= Q / 2. That is A.B >= uA + uB with u =
/// (n - Q^2 / 2) / 2 + Q e; m is u - t and more than the same errors.
GPUJOIN_HD inline ScreenThresholds screen_thresholds(const ScreenRadius& radius, double norm_sq,
                                                     double error, double accumulation) {
  constexpr double kSingle = 0x1p-22;
  constexpr double kLeast = 0x1p-100;  // far above what single precision loses near 0
  const double reach = radius.reject, sure = radius.accept;
  const double r = (norm_sq - reach * reach / 2) / 2 - reach * error - error * error;
  const double t = r - accumulation * (norm_sq + 2 * fabs(r)) - kSingle * fabs(r) - kLeast;
  const float reject = static_cast<float>(t);
  if (!(sure > 0)) return {reject, HUGE_VALF};
  const double u = (norm_sq - sure * sure / 2) / 2 + sure * error;
  const double m =
      (u - reject + accumulation * (norm_sq + 2 * fabs(r) + 2 * fabs(u))) * (1 + 0x1p-20) +
      kSingle * (fabs(u) + fabs(r)) + kLeast;
  return {reject, static_cast<float>(m)};
}

/// Relative error of a dot product of `dims` terms in single precision, by fused multiply-adds in
/// any order.
GPUJOIN_HD inline double single_accumulation(std::uint32_t dims) { return (dims + 8.0) * 0x1p-23; }

/// The same for tensor cores, which multiply half-precision numbers and accumulate 16 products at a
/// time in single precision. They keep at least 23 bits of each addend below the largest [Fasi], so
/// a step of 17 addends errs by at most 17 * 2^-22 of the largest. Twice that is assumed.
GPUJOIN_HD inline double tensor_accumulation(std::uint32_t dims) { return (dims + 16.0) * 0x1p-21; }

/// A lower bound on the distance of two intervals [low, high], 0 where they meet.
GPUJOIN_HD inline double interval_gap(double a_low, double a_high, double b_low, double b_high) {
  const double above = b_low - a_high, below = a_low - b_high;
  const double gap = above > below ? above : below;
  return gap > 0 ? gap : 0;
}

/// An upper bound on the difference of two values of intervals: no rounded difference exceeds it,
/// for rounding is monotone.
GPUJOIN_HD inline double interval_span(double a_low, double a_high, double b_low, double b_high) {
  const double above = b_high - a_low, below = a_high - b_low;
  return above > below ? above : below;
}

/// Whether every pair of two boxes of all columns, whose spans have this sum of squares, is within
/// eps; `accept` is ScreenBounds::accept of eps, or negative. Added up in column order, the spans'
/// squares are no less than what the definition adds up for any pair, rounding being monotone; and
/// that sum is at most Threshold::raw where a sum of the same squares in another order is at most
/// `accept`.
GPUJOIN_HD inline bool boxes_surely_match(double span_squares, double accept) {
  return span_squares <= accept;
}

/// Whether two boxes, whose gaps have this sum of squares, may hold a pair within true_reach(): up
/// to 64 gaps were rounded, squared and added up. Overflow of the square of `reach` skips nothing.
GPUJOIN_HD inline bool boxes_may_meet(double gap_squares, double reach) {
  return !(gap_squares * (1 - 0x1p-44) > reach * reach);
}

}  // namespace gpujoin
