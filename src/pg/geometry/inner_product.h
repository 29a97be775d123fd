// Joins by inner product as joins of distances [Xbox]: points of both sides are lifted into two
// dimensions more, (s a, y, 0) and (b, 0, x), so that all points of a side have one norm, L and M.
// Then the squared distance of two lifted points is L^2 + M^2 - 2 s a.b: the larger the inner
// product, the nearer they are. Numbers are stored in single precision, and the inner product that
// decides is a sum in single precision, too, in any order; how much all of it rounds is bounded
// here.
//
// Where only the order of the right points of one left point counts, y is 0, and the power of two s
// may be the left point's own: a constant is added to its squared distances.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/portability.h"

namespace gpujoin {

/// The dimensions that lifting adds: y of left points, and x of right ones.
inline constexpr std::uint32_t kLiftedDims = 2;

/// Whether a point with this sum of squares can be lifted: no sum of products of two such points
/// leaves the range of single precision, and what products lose to underflow is far less than what
/// rounding is allowed below.
GPUJOIN_HD inline bool can_lift(double squares) {
  return squares == 0 || (squares >= 1e-28 && squares <= 1e36);
}

/// The power of two that brings points of one norm near another one; 1 where a norm is 0.
GPUJOIN_HD inline double lifting_scale(double norm, double wanted) {
  return norm > 0 && wanted > 0 ? ldexp(1.0, ilogb(wanted) - ilogb(norm)) : 1;
}

/// The coordinate that gives a point the norm of all.
GPUJOIN_HD inline float lifted_coordinate(double squares, double norm) {
  return static_cast<float>(sqrt(fmax(norm * norm - squares, 0)));
}

/// How far the squared distance of two lifted points of so many dimensions, as the definition
/// computes it, may be from L^2 + M^2 - 2 s c, where c is what any summation in single precision
/// has for their inner product. With u = 2^-24 and n dimensions, c errs by n u / (1 - n u) |a| |b|,
/// which makes 1.01 n 2^-23 L M of the distance for n <= 16,000; y and x are rounded, which makes
/// 2^-23 (L^2 + M^2) at most. L M is a quarter of (L + M)^2 at most. The rest, sums in double
/// precision and products that underflow, is less than a hundredth of what is left.
GPUJOIN_HD inline double lifting_slack(double left_norm, double right_norm, std::uint32_t dims) {
  const double norms = left_norm + right_norm;
  return (dims + 8) * 1.2e-7 * norms * norms;
}

}  // namespace gpujoin
