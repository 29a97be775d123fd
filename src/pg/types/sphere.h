// Places on the Earth as points on a sphere, in metres, and what radii along the surface are
// between them.
#pragma once

#include <cmath>

#include "pg/geometry/great_circle.h"
#include "pg/types/value_reading.h"

namespace gpujoin {

// A longitude and a latitude are a point on a sphere of the Earth's mean radius: the direction of
// the vertical there. On the spheroid of WGS 84 or GRS 80 a step of the vertical by an angle is a
// step along the surface by at least the least radius of curvature times the angle, and at most the
// largest one times it; so are geodesics as wholes, for either surface has the other's shortest
// path.
inline constexpr double kMeanRadius = kEarthRadius;  ///< metres, (2 a + b) / 3
inline constexpr double kLeastRadius = 6335439.0;    ///< of curvature, b^2 / a, rounded down
inline constexpr double kLargestRadius = 6399594.0;  ///< a^2 / b, rounded up
inline constexpr double kEquatorRadius = 6378137.0;  ///< a
inline constexpr double kSquaredEccentricity = 0.006694379990141317;  ///< 1 - (b / a)^2, WGS 84

inline bool are_places(double longitude, double latitude) {
  return std::fabs(longitude) <= 360 && std::fabs(latitude) <= 90;
}

/// The place of degrees. False where they are none, or not finite.
inline bool to_sphere(double longitude, double latitude, double* place) {
  if (!are_places(longitude, latitude)) return false;
  set_place(longitude, latitude, place);
  return true;
}

/// Likewise on the spheroid of WGS 84, from which that of GRS 80 is a tenth of a millimetre away.
inline bool to_spheroid(double longitude, double latitude, double* place) {
  if (!are_places(longitude, latitude)) return false;
  const Turn east = turn_of(longitude), north = turn_of(latitude);
  // From the place along the vertical to the axis.
  const double radius =
      kEquatorRadius / std::sqrt(1 - kSquaredEccentricity * north.sine * north.sine);
  place[0] = radius * (north.cosine * east.cosine);
  place[1] = radius * (north.cosine * east.sine);
  place[2] = radius * (1 - kSquaredEccentricity) * north.sine;
  return true;
}

/// The straight line between points whose verticals differ by an angle.
inline double chord_of(double angle) {
  return 2 * kMeanRadius * std::sin(std::fmin(angle, M_PI) / 2);
}

inline constexpr double kFarthestArc = 15e6;  ///< metres: antipodes are any formula's weak spot

/// The chords of places on a sphere that are `eps` metres apart on a surface with such radii of
/// curvature, by a formula that errs by less than `slack` metres.
inline void widen_by_radii(double eps, double least, double largest, double slack, EpsBand* band) {
  constexpr double kRelative = 1e-9;
  const double inner = (std::fmin(eps, kFarthestArc) * (1 - kRelative) - slack) / largest;
  const double outer = (eps * (1 + kRelative) + slack) / least;
  band->accept = inner > 0 ? chord_of(inner) * (1 - 1e-12) : -1;
  band->select = eps > kFarthestArc ? kAnyChord : chord_of(outer) * (1 + 1e-12);
}

/// Likewise of PostGIS and earthdistance's points, which round to 1e-8 and less.
inline constexpr double kUsualSlack = 1e-3;

/// The chords of places on the spheroid that are `eps` metres apart along it. No chord is longer
/// than its geodesic, which bends nowhere more than a circle of the least radius of curvature: its
/// chord is at least that of an arc of this circle as long as the geodesic (Schur's comparison of
/// curves), up to half the circle. Places farther apart than that are nearly antipodes, whose chord
/// is longer than any that is accepted here, for it is at least twice the least radius times the
/// sine of half the angle between their verticals.
inline void widen_by_geodesic(double eps, EpsBand* band) {
  constexpr double kRelative = 1e-9;
  const double inner = std::fmin(eps, kFarthestArc) * (1 - kRelative) - kUsualSlack;
  const double circle = 2 * kLeastRadius;
  band->accept = inner > 0 ? circle * std::sin(inner / circle) * (1 - 1e-12) : -1;
  band->select = eps > kFarthestArc ? kAnyChord : eps * (1 + kRelative) + kUsualSlack;
}

/// Likewise on a sphere of the mean radius, where the formula's error is that of a few roundings of
/// an angle of up to four right ones, or of coordinates: less than 2^-46 of the radius, 0.1
/// micrometres, as is that of a place. So the shell that the condition decides is four micrometres
/// and two billionths of eps thick: of places spread evenly within 500 m one in fifty million lies
/// there.
inline void widen_by_angle(double eps, EpsBand* band) {
  widen_by_radii(eps, kMeanRadius, kMeanRadius, 2e-6, band);
}

/// The metric "haversine": the engine decides all but those at the radius to the last bit, which
/// `<` and `<=` tell apart. Arcs never fall where chords grow (pg/geometry/great_circle.h), so that
/// a chord is in or out by its length alone.
inline void widen_haversine(double eps, std::uint32_t, EpsBand* band) {
  band->select = chord_within(eps);
  band->accept = eps > 0 ? chord_within(std::nextafter(eps, 0.0), band->select) : -1;
}

/// For errors about degrees that are none.
inline constexpr char kDegreesHint[] =
    "Longitudes are from -360 to 360 degrees, latitudes from -90 to 90, and the longitude comes "
    "first: 'lon,lat'.";

/// Hint for geometries that are not in degrees.
inline constexpr char kGeometryDegreesHint[] =
    "By the metric haversine a geometry has SRID 4326, 4258 or 4269: transform it with "
    "ST_Transform(geom, 4326), for example in a view.";

/// What a value of one column or array becomes as a longitude and a latitude. To a join function,
/// and to gpujoin's own distance, what is not finite is near nothing; to others it is an odd value.
inline ValueFinding add_degrees(PointBuffer* buffer, ValueShape* shape, std::int64_t id,
                                double longitude, double latitude, bool takes_unknown) {
  double place[3];
  if (takes_unknown && are_degrees(longitude, latitude))
    set_place(longitude, latitude, place);
  else if (!to_sphere(longitude, latitude, place))
    return finding(ValueProblem::kIncomparable, 2);
  return add_doubles(buffer, shape, id, reinterpret_cast<const char*>(place), 3);
}

}  // namespace gpujoin
