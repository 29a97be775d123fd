// Places on the Earth as points on a sphere, in metres, and what radii along the surface are
// between them.
#pragma once

#include <cmath>

#include "pg/types/value_type.h"

namespace gpujoin {

// A longitude and a latitude are a point on a sphere of the Earth's mean radius: the direction of
// the vertical there. On the spheroid of WGS 84 or GRS 80 a step of the vertical by an angle is a
// step along the surface by at least the least radius of curvature times the angle, and at most the
// largest one times it; so are geodesics as wholes, for either surface has the other's shortest
// path.
inline constexpr double kMeanRadius = 6371008.7714;  ///< metres, (2 a + b) / 3
inline constexpr double kLeastRadius = 6335439.0;    ///< of curvature, b^2 / a, rounded down
inline constexpr double kLargestRadius = 6399594.0;  ///< a^2 / b, rounded up

/// The point of degrees. False where they are none.
inline bool to_sphere(double longitude, double latitude, double* point) {
  if (!(std::fabs(longitude) <= 360 && std::fabs(latitude) <= 90)) return false;
  const double x = longitude * (M_PI / 180), y = latitude * (M_PI / 180);
  point[0] = kMeanRadius * std::cos(y) * std::cos(x);
  point[1] = kMeanRadius * std::cos(y) * std::sin(x);
  point[2] = kMeanRadius * std::sin(y);
  return true;
}

/// The straight line between points whose verticals differ by an angle.
inline double chord_of(double angle) {
  return 2 * kMeanRadius * std::sin(std::fmin(angle, M_PI) / 2);
}

/// The chords of places that are `eps` metres apart on a surface with such radii of curvature.
inline void widen_by_radii(double eps, double least, double largest, EpsBand* band) {
  constexpr double kSlack = 1e-3;     // metres: formulas differ by less, and PostGIS rounds to 1e-8
  constexpr double kFarthest = 15e6;  // metres: antipodes are any formula's weak spot
  constexpr double kRelative = 1e-9;
  const double inner = (std::fmin(eps, kFarthest) * (1 - kRelative) - kSlack) / largest;
  const double outer = (eps * (1 + kRelative) + kSlack) / least;
  band->accept = inner > 0 ? chord_of(inner) * (1 - 1e-12) : -1;
  band->select = eps > kFarthest ? 3 * kMeanRadius : chord_of(outer) * (1 + 1e-12);
}

}  // namespace gpujoin
