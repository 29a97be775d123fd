// Joins by cosine distance as joins of directions: how far apart the directions of two vectors
// within eps can lie, and why no pair is lost; and how near directions prove a pair. The distance
// itself is core/distance.h's, which decides the pairs in between.
//
// The vectors a / |a| and b / |b| have the squared Euclidean distance 2 (1 - cos). Directions are
// stored in single precision, which moves them by less than rounding moves the radius of most
// joins.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "core/portability.h"

namespace gpujoin {

/// Whether a vector has a cosine distance to any other, by the sum of its squares.
GPUJOIN_HD inline bool has_direction(double squares) { return squares > 0 && squares <= DBL_MAX; }

/// Whether a vector that has a direction is so short or so long that what the definition computes
/// from it proves nothing about its direction. Short: each of up to 16,000 products loses up to
/// 2^-1075 to underflow; of sums of squares from 2^-960 on, and of a dot product against |a| |b| of
/// two such vectors, that is less than 2^-100. Long: partial sums of a dot product are at most |a|
/// |b|, up to rounding, so that none overflows where both sums of squares are at most 2^1020. No
/// vector of floats is so short or so long.
GPUJOIN_HD inline bool is_extreme(double squares) {
  return squares > 0 && squares <= DBL_MAX && (squares < 0x1p-960 || squares > 0x1p1020);
}

/// A coordinate of a vector whose norm is the square root of the sum of its squares.
GPUJOIN_HD inline float direction_coordinate(double x, double norm) {
  return static_cast<float>(x / norm);
}

/// Writes the direction of a vector: NaN where it has none. Squares are summed as the definition
/// sums them. Returns whether the vector is extreme.
template <class T>
GPUJOIN_HD inline bool write_direction(const T* point, std::uint32_t dims, float* direction) {
  double squares = 0;
  for (std::uint32_t d = 0; d < dims; ++d) {
    const double x = static_cast<double>(point[d]);
    squares = add_rounded(squares, multiply_rounded(x, x));
  }
  const double norm = has_direction(squares) ? sqrt(squares) : static_cast<double>(NAN);
  for (std::uint32_t d = 0; d < dims; ++d)
    direction[d] = direction_coordinate(static_cast<double>(point[d]), norm);
  return is_extreme(squares);
}

/// A radius that no two directions exceed, directions of extreme vectors included: where squares
/// add up to s >= 2^-1074, each square is at most s + 2^-1075, so no coordinate exceeds 2 and no
/// two directions of 16,000 coordinates lie more than 512 apart.
inline constexpr double kAnyDirection = 0x1p10;

/// An upper bound on what rounding adds to a cosine distance: with u = 2^-53, n dimensions and two
/// vectors that are not extreme, a sum of squares is the true one times 1 +- (n + 1) u, its root
/// the true norm times 1 +- (n / 2 + 2) u, the product of two of them true but for (n + 6) u. The
/// dot product errs by (n + 1) u |a| |b|, so the quotient by (2 n + 9) u, which clamping only
/// lessens; the last subtraction errs by 2 u.
GPUJOIN_HD inline double cosine_margin(std::uint32_t dims) { return (dims + 8.0) * DBL_EPSILON; }

/// How far a stored direction lies from the true one of a vector that is not extreme: the norm and
/// the division move it by at most (n / 2 + 4) u < 2^-39, rounding to single precision by 2^-24 of
/// its length and 2^-150 a coordinate: 2^-24 * (1 + 2^-12) together.
inline constexpr double kStoredDirection = 0x1.01p-24;

/// An upper bound on the distance, by the definition of L2, of the stored directions of every two
/// vectors that are not extreme and that the definition finds within eps. Their true directions lie
/// within sqrt(2 (eps + margin)) of each other, and no two beyond sqrt(2 * 2): an eps above 2 adds
/// nothing. The last factor is for rounding in the sum of squared differences, (n + 4) u, and in
/// what stands here.
GPUJOIN_HD inline double direction_radius(double eps, std::uint32_t dims) {
  const double within = (eps < 2 ? eps : 2) + cosine_margin(dims);
  return (sqrt(2 * within) + 2 * kStoredDirection) * (1 + 0x1p-30);
}

/// The other way round: every two vectors that are not extreme, and whose stored directions lie
/// within this distance by the definition of L2, are within eps. Negative: none surely are. The
/// true directions lie within sqrt(2 (eps - margin)) of each other, so 1 - cos is eps - margin at
/// most, and what the definition computes, which is finite, is eps at most. An eps above 2 is cut
/// to that, which only leaves pairs open.
GPUJOIN_HD inline double sure_direction_radius(double eps, std::uint32_t dims) {
  const double within = (eps < 2 ? eps : 2) - cosine_margin(dims);
  if (!(within > 0)) return -1;
  return sqrt(2 * within) * (1 - 0x1p-30) - 2 * kStoredDirection * (1 + 0x1p-30);
}

}  // namespace gpujoin
