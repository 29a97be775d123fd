// What src/pg/geometry/great_circle.h promises: arcs that never fall where chords grow, chords that
// are within an arc to the last bit, places that are one however they are written.

#include "pg/geometry/great_circle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/distance.h"

namespace gpujoin::test {
namespace {

double distance(double longitude, double latitude, double other_longitude, double other_latitude) {
  double a[3], b[3];
  set_place(longitude, latitude, a);
  set_place(other_longitude, other_latitude, b);
  return arc_of_chord(std::sqrt(raw_distance<Metric::kL2>(a, b, 3)));
}

/// The formula that the metric is named for, in extended precision.
long double haversine(long double longitude, long double latitude, long double other_longitude,
                      long double other_latitude) {
  const long double radian = acosl(-1.0L) / 180;
  const long double north = sinl((other_latitude - latitude) / 2 * radian),
                    east = sinl((other_longitude - longitude) / 2 * radian);
  const long double square =
      north * north + cosl(latitude * radian) * cosl(other_latitude * radian) * east * east;
  return 2 * static_cast<long double>(kEarthRadius) * asinl(sqrtl(fminl(1, square)));
}

TEST(GreatCircle, small_arcsines_are_right_to_two_units_of_the_last_place) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const double x = std::ldexp(std::uniform_real_distribution<>(0.5, 1)(random), -1 - i % 60);
    const auto wanted = static_cast<double>(asinl(static_cast<long double>(x)));
    EXPECT_LE(std::fabs(small_arcsine(x) - wanted), 2 * (std::nextafter(wanted, 1) - wanted)) << x;
  }
}

TEST(GreatCircle, arcs_never_fall_where_chords_grow) {
  std::mt19937_64 random(2);
  const auto expect_growth = [](double chord, int steps) {
    double before = arc_of_chord(chord);
    for (int i = 0; i < steps; ++i) {
      chord = std::nextafter(chord, INFINITY);
      const double arc = arc_of_chord(chord);
      ASSERT_GE(arc, before) << chord;
      before = arc;
    }
  };
  expect_growth(0, 1000);
  expect_growth(kEarthRadius * (1 - 1e-13), 5000);  // where the series gives way to the other one
  expect_growth(kEarthDiameter * (1 - 1e-13), 5000);
  for (int i = 0; i < 20000; ++i)
    expect_growth(kEarthDiameter * std::pow(std::uniform_real_distribution<>(0, 1)(random), i % 9),
                  5);
  EXPECT_EQ(arc_of_chord(0), 0);
  EXPECT_DOUBLE_EQ(arc_of_chord(kAnyChord), M_PI * kEarthRadius);
  EXPECT_TRUE(std::isnan(arc_of_chord(NAN)));
}

TEST(GreatCircle, chords_are_within_an_arc_if_and_only_if_their_arcs_are) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20000; ++i) {
    const double share = std::uniform_real_distribution<>(0, 1)(random);
    const double arc = M_PI * kEarthRadius * std::pow(share, i % 40);
    const double chord = chord_within(arc);
    if (chord == kAnyChord) {
      EXPECT_LE(arc_of_chord(kAnyChord), arc);
      continue;
    }
    EXPECT_LE(arc_of_chord(chord), arc) << arc;
    EXPECT_GT(arc_of_chord(std::nextafter(chord, INFINITY)), arc) << arc;
  }
  for (const double arc : {0.0, 5e-324, 1e-320, 1e-310, 1e-300, 1e-10, 0.5}) {
    EXPECT_LE(arc_of_chord(chord_within(arc)), arc);
    EXPECT_GT(arc_of_chord(std::nextafter(chord_within(arc), INFINITY)), arc);
  }
  EXPECT_EQ(chord_within(20.1e6), kAnyChord);
  EXPECT_EQ(chord_within(INFINITY), kAnyChord);
}

TEST(GreatCircle, distances_are_those_of_the_haversine_formula) {
  std::mt19937_64 random(4);
  std::uniform_real_distribution<> unit(-1, 1);
  for (int i = 0; i < 200000; ++i) {
    const double longitude = 180 * unit(random), latitude = 90 * unit(random);
    const double step = std::pow(10, -(i % 8));
    const double other_longitude = longitude + 60 * step * unit(random);
    const double other_latitude =
        std::fmax(-90, std::fmin(90, latitude + 60 * step * unit(random)));
    const auto wanted =
        static_cast<double>(haversine(longitude, latitude, other_longitude, other_latitude));
    if (wanted > 18e6) continue;  // antipodes are either formula's weak spot
    EXPECT_NEAR(distance(longitude, latitude, other_longitude, other_latitude), wanted, 5e-8);
  }
}

TEST(GreatCircle, a_place_is_one_however_it_is_written) {
  for (const double latitude : {-90.0, -33.3, 0.0, 51.25, 90.0}) {
    EXPECT_EQ(distance(180, latitude, -180, latitude), 0);
    EXPECT_EQ(distance(0, latitude, 360, latitude), 0);
    EXPECT_EQ(distance(-90, latitude, 270, latitude), 0);
    EXPECT_EQ(distance(200.5, latitude, -159.5, latitude), 0);
  }
  for (double longitude = -360; longitude <= 360; longitude += 7.5) {
    EXPECT_EQ(distance(longitude, 90, 12, 90), 0);
    EXPECT_EQ(distance(longitude, -90, 12, -90), 0);
  }
  EXPECT_DOUBLE_EQ(distance(0, 0, 90, 0), M_PI / 2 * kEarthRadius);
  EXPECT_TRUE(std::isnan(distance(NAN, 0, 0, 0)));
  EXPECT_TRUE(std::isnan(distance(0, 0, 0, INFINITY)));
}

TEST(GreatCircle, what_is_beyond_the_range_is_no_degrees) {
  EXPECT_TRUE(are_degrees(360, 90) && are_degrees(-360, -90) && are_degrees(NAN, 0) &&
              are_degrees(0, -INFINITY));
  EXPECT_FALSE(are_degrees(360.0001, 0) || are_degrees(0, 90.0001) || are_degrees(50, -91) ||
               are_degrees(NAN, 91) || are_degrees(-1e9, NAN));
}

}  // namespace
}  // namespace gpujoin::test
