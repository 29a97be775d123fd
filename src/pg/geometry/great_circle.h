// Distances along the surface of a sphere: the definition of the metric "haversine". A longitude
// and a latitude are a place, a point in space; the distance of two places is the arc above the
// straight line between them, whose length is core/distance.h's L2 distance. So joins by arcs are
// L2 joins of places.
//
// The haversine of an angle is the square of half its chord, hence the metric's name: the formula
// in latitudes and longitudes computes the same number, with other roundings.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace gpujoin {

/// Metres: the Earth's mean radius, (2 a + b) / 3 of WGS 84, with the digits that PostGIS has.
inline constexpr double kEarthRadius = 6371008.771415059;

/// The straight line through the centre; no chord is longer but for rounding.
inline constexpr double kEarthDiameter = 2 * kEarthRadius;

/// A radius that no two places exceed.
inline constexpr double kAnyChord = 3 * kEarthRadius;

/// Whether degrees are a longitude and a latitude, or none that anybody knows: NaN and infinities
/// are, and have no place.
inline bool are_degrees(double longitude, double latitude) {
  return !(std::isfinite(longitude) && std::fabs(longitude) > 360) &&
         !(std::isfinite(latitude) && std::fabs(latitude) > 90);
}

struct Turn {
  double sine, cosine;
};

/// The sine and cosine of degrees, exact where these are multiples of 90: so the poles and the date
/// line are one place each, whichever way they are written.
inline Turn turn_of(double degrees) {
  const double quarters = std::nearbyint(degrees / 90);
  const double rest = (degrees - 90 * quarters) * (M_PI / 180);
  const double sine = std::sin(rest), cosine = std::cos(rest);
  switch (static_cast<int>(quarters) & 3) {
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    case 3:
      return {-cosine, sine};
    default:
      return {sine, cosine};
  }
}

/// The place of such degrees, in metres from the centre; NaN where they are not finite.
inline void set_place(double longitude, double latitude, double* place) {
  place[0] = place[1] = place[2] = static_cast<double>(NAN);
  if (!std::isfinite(longitude) || !std::isfinite(latitude)) return;
  const Turn east = turn_of(longitude), north = turn_of(latitude);
  place[0] = kEarthRadius * (north.cosine * east.cosine);
  place[1] = kEarthRadius * (north.cosine * east.sine);
  place[2] = kEarthRadius * north.sine;
}

/// The arcsine of 0 .. 0.5, within two units of the last place: the power series, all of whose
/// coefficients are positive, term n being ((2 n - 1)^2 / (2 n (2 n + 1))) x^2 times the one before
/// it. The terms left out come to less than 2^-56 of the sum.
inline double small_arcsine(double x) {
  constexpr int kTerms = 26;
  const double square = x * x;
  double sum = 1;
  for (int n = kTerms; n > 0; --n) {
    const double ratio = ((2.0 * n - 1) * (2.0 * n - 1)) / (2.0 * n * (2.0 * n + 1));
    sum = 1 + ratio * square * sum;
  }
  return x * sum;
}

/// The arc above a chord, in metres; NaN of NaN.
///
/// It never falls where the chord grows, whatever is rounded, which no library promises of its
/// arcsine: rounding is monotone, and so are sums and products of numbers that are not negative;
/// beyond a half the argument of the series falls, and is subtracted; and no value there is below
/// the one of a half.
inline double arc_of_chord(double chord) {
  const double half = chord / kEarthDiameter;
  if (std::isnan(half)) return half;
  if (half <= 0.5) return kEarthDiameter * small_arcsine(half);
  const double rest = half < 1 ? std::sqrt((1 - half) / 2) : 0;
  const double angle = M_PI / 2 - 2 * small_arcsine(rest);
  const double least = small_arcsine(0.5);
  return kEarthDiameter * (angle > least ? angle : least);
}

/// The longest chord whose arc is at most `arc`, or kAnyChord where each one's is: since arcs never
/// fall, a chord is at most as long if and only if its arc is. `arc` is not negative. Looks around
/// `guess` in steps that double. Doubles that are not negative are in the order of their bits.
inline double chord_within(double arc, double guess) {
  if (arc_of_chord(kAnyChord) <= arc) return kAnyChord;
  const auto is_within = [&](std::uint64_t bits) {
    return arc_of_chord(std::bit_cast<double>(bits)) <= arc;
  };
  const auto most = std::bit_cast<std::uint64_t>(kAnyChord);
  auto low = std::bit_cast<std::uint64_t>(guess), high = low;
  std::uint64_t step = 1;
  if (is_within(low)) {
    for (high = std::min(low + step, most); is_within(high); step *= 2) {
      low = high;
      high = std::min(low + step, most);
    }
  } else {
    for (low -= std::min(low, step); low > 0 && !is_within(low); step *= 2) {
      high = low;
      low -= std::min(low, step);
    }
  }
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (is_within(middle) ? low : high) = middle;
  }
  return std::bit_cast<double>(low);
}

inline double chord_within(double arc) {
  return chord_within(arc, kEarthDiameter * std::sin(std::fmin(arc / kEarthDiameter, M_PI / 2)));
}

}  // namespace gpujoin
