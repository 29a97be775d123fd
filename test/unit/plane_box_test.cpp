#include "pg/geometry/plane_box.h"

#include <gtest/gtest.h>

#include <random>

namespace gpujoin {
namespace {

struct Segment {
  double x[2], y[2];  ///< [end]
};

double clamp(double t) { return t < 0 ? 0 : t > 1 ? 1 : t; }

/// As a library computes it: in double precision, from differences of coordinates.
double distance_to_segment(double x, double y, const Segment& s) {
  const double dx = s.x[1] - s.x[0], dy = s.y[1] - s.y[0], length = dx * dx + dy * dy;
  const double t = length > 0 ? clamp(((x - s.x[0]) * dx + (y - s.y[0]) * dy) / length) : 0;
  return std::hypot(s.x[0] + t * dx - x, s.y[0] + t * dy - y);
}

PlaneBox box_of(const Segment& s) {
  PlaneBox box;
  const double* const ends[] = {s.x, s.y};
  for (int d = 0; d < 2; ++d) {
    box.low[d] = std::nextafter(static_cast<float>(std::fmin(ends[d][0], ends[d][1])), -HUGE_VALF);
    box.high[d] = std::nextafter(static_cast<float>(std::fmax(ends[d][0], ends[d][1])), HUGE_VALF);
  }
  return box;
}

class Segments {
 public:
  Segment next() {
    const double scale = std::exp2(std::uniform_int_distribution<int>(-20, 20)(random_));
    Segment s;
    for (int end = 0; end < 2; ++end) {
      s.x[end] = end > 0 && flat() ? s.x[0] : scale * number();
      s.y[end] = end > 0 && flat() ? s.y[0] : scale * number();
    }
    return s;
  }
  double number() { return std::uniform_real_distribution<double>(-1, 1)(random_); }

 private:
  bool flat() { return std::uniform_int_distribution<int>(0, 5)(random_) == 0; }
  std::mt19937 random_{7};
};

TEST(PlaneBox, distances_are_between_those_of_boxes) {
  Segments segments;
  for (int i = 0; i < 200000; ++i) {
    const Segment s = segments.next(), other = segments.next();
    const double point[2] = {other.x[0], other.y[0]};
    const double distance = distance_to_segment(point[0], point[1], s);
    const Span a = span_of(kNoPlaneBox, point), b = span_of(box_of(s), nullptr);
    ASSERT_LE(least_distance(a, b), distance);
    ASSERT_LE(least_distance(b, a), distance);
    ASSERT_GE(greatest_distance(a, b), distance);
    ASSERT_GE(greatest_distance(b, a), distance);
    ASSERT_LE(least_distance(span_of(box_of(other), nullptr), b), distance);
  }
}

TEST(PlaneBox, distances_are_at_least_those_of_middles_less_the_reach) {
  Segments segments;
  for (int i = 0; i < 200000; ++i) {
    const Segment s = segments.next(), other = segments.next();
    const PlaneBox box = box_of(s);
    const double x = other.x[0], y = other.y[0];
    const double middles = std::hypot(middle_of(box, 0) - x, middle_of(box, 1) - y);
    const double reach = reach_of(box);
    ASSERT_LE(middles - reach - 3e-14 * (middles + reach), distance_to_segment(x, y, s));
  }
}

TEST(PlaneBox, a_box_without_a_gap_is_no_further_than_nothing) {
  const PlaneBox box = {{0, 0}, {4, 2}};
  const double inside[2] = {1, 1}, beside[2] = {7, 6};
  EXPECT_LE(least_distance(span_of(kNoPlaneBox, inside), span_of(box, nullptr)), 0);
  EXPECT_NEAR(least_distance(span_of(kNoPlaneBox, beside), span_of(box, nullptr)), 5, 1e-9);
  EXPECT_NEAR(greatest_distance(span_of(kNoPlaneBox, beside), span_of(box, nullptr)), std::sqrt(85),
              1e-9);
  EXPECT_NEAR(reach_of(box), std::sqrt(5), 1e-9);
  EXPECT_EQ(reach_of(kNoPlaneBox), 0);
  EXPECT_FALSE(is_box(kNoPlaneBox));
}

}  // namespace
}  // namespace gpujoin
