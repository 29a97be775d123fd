// Boxes of values in the plane that are more than points, lines and areas, and what follows from
// them for the values' distances.
#pragma once

#include <cmath>

namespace gpujoin {

/// A box in the plane, rounded outwards.
struct PlaneBox {
  float low[2], high[2];
};

/// What a row has that is a point, or nothing: its low bounds are above the high ones.
inline constexpr PlaneBox kNoPlaneBox = {{1, 1}, {0, 0}};

inline bool is_box(const PlaneBox& box) { return box.low[0] <= box.high[0]; }

/// The middle of the box in one dimension. A sum of two floats is exact enough in double precision
/// that the middle lies within.
inline double middle_of(const PlaneBox& box, int d) {
  return (static_cast<double>(box.low[d]) + static_cast<double>(box.high[d])) / 2;
}

/// How far a point of the box can be from its middle, at most; 0 for a point.
inline double reach_of(const PlaneBox& box) {
  if (!is_box(box)) return 0;
  double sides[2];
  for (int d = 0; d < 2; ++d) {
    const double middle = middle_of(box, d);
    const double down = middle - static_cast<double>(box.low[d]);
    const double up = static_cast<double>(box.high[d]) - middle;
    sides[d] = down > up ? down : up;
  }
  return std::sqrt(sides[0] * sides[0] + sides[1] * sides[1]) * (1 + 1e-15);
}

/// A box in double precision, which may be a point.
struct Span {
  double low[2], high[2];
};

inline Span span_of(const PlaneBox& box, const double* middle) {
  Span span;
  for (int d = 0; d < 2; ++d) {
    span.low[d] = is_box(box) ? static_cast<double>(box.low[d]) : middle[d];
    span.high[d] = is_box(box) ? static_cast<double>(box.high[d]) : middle[d];
  }
  return span;
}

/// Some hundred roundings. Distances of points and segments are computed from differences of
/// coordinates, each rounded once, and products of two of these; places on segments are rounded,
/// too, but do not leave the segment's box, as rounding is monotone. So the error of what follows
/// from boxes is a few roundings of the greatest difference, which is at most the distance and both
/// diagonals.
inline constexpr double kBoxSlack = 3e-14;

/// What the values in two boxes are apart at least, as the type computes it.
inline double least_distance(const Span& a, const Span& b) {
  double gap[2], size = 0;
  for (int d = 0; d < 2; ++d) {
    const double over = a.low[d] - b.high[d], under = b.low[d] - a.high[d];
    gap[d] = over > under ? over : under;
    gap[d] = gap[d] > 0 ? gap[d] : 0;
    size += gap[d] + (a.high[d] - a.low[d]) + (b.high[d] - b.low[d]);
  }
  return std::sqrt(gap[0] * gap[0] + gap[1] * gap[1]) - kBoxSlack * size;
}

/// The same at most.
inline double greatest_distance(const Span& a, const Span& b) {
  double reach[2];
  for (int d = 0; d < 2; ++d) {
    const double over = a.high[d] - b.low[d], under = b.high[d] - a.low[d];
    reach[d] = over > under ? over : under;
  }
  return std::sqrt(reach[0] * reach[0] + reach[1] * reach[1]) + kBoxSlack * (reach[0] + reach[1]);
}

}  // namespace gpujoin
