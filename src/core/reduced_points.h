// A few coordinates that stand for many: the parts of a point along some directions, and the length
// of what they leave. No two points lie further apart by them, so they reject no pair that lies
// within a radius. Choosing the directions is the engines'.
//
// Let z be a point as core/tile_screen.h centres, scales and cuts it, Q the matrix of m directions
// as columns, and K an orthonormal one near it. The map z -> (K'z, |z - K K'z|) moves no two points
// further apart: K'z and z - K K'z are orthogonal parts of z, and the lengths of two vectors differ
// by no more than the vectors.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "core/portability.h"

namespace gpujoin {

/// How far the computed Q'z may lie from K'z, as a share of |z|. `skew` bounds the sum of |Q'Q - I|
/// over every row. With K the polar factor of Q = K H, H the root of Q'Q, |Q - K| = |H - I| <=
/// |H^2 - I| <= skew. Each of m products of `dims` terms in double precision, in any order and with
/// or without fused multiply-adds, errs by (dims + 2) 2^-53 |q| |z|, and |q| < 2.
GPUJOIN_HD inline double reduction_share(double skew, std::uint32_t m, std::uint32_t dims) {
  return skew * (1 + 0x1p-20) + sqrt(static_cast<double>(m)) * (dims + 4.0) * 0x1p-51;
}

/// The length of what the directions leave of a point, from its squared length and that of Q'z.
GPUJOIN_HD inline double rest_length(double whole_sq, double reduced_sq) {
  return whole_sq > reduced_sq ? sqrt(whole_sq - reduced_sq) : 0;
}

/// An upper bound on how far (Q'z, rest_length()) lies from (K'z, |z - K K'z|). With s the share,
/// |Q'z|^2 errs by 2.1 s |z|^2 at most, and the two sums of squares by (dims + m + 4) 2^-52 |z|^2,
/// which is less than s |z|^2; roots of numbers that differ by x differ by no more than sqrt(x), or
/// x over either root.
GPUJOIN_HD inline double reduction_error(double share, double whole_sq, double rest) {
  const double squares = 4 * share * whole_sq;
  const double root = sqrt(squares);
  const double by_root = root * rest < squares ? root : squares / rest;
  return (share * sqrt(whole_sq) + by_root) * (1 + 0x1p-20);
}

}  // namespace gpujoin
