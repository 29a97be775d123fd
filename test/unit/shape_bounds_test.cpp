// Bounds of the distance of two shapes against the distance of all their segments.
#include "pg/geometry/shape_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace gpujoin {
namespace {

struct Line {
  std::vector<Corner> corners;
  std::uint64_t count;

  Corner at(std::uint64_t i) const { return corners[i]; }
};

struct Shape {
  std::vector<Line> lines;

  template <class Take>
  void walk(const Take& take) const {
    for (const Line& line : lines) take(line);
  }
  void add(std::vector<Corner> corners) {
    const std::uint64_t count = corners.size();
    lines.push_back({std::move(corners), count});
  }
};

double cross(const Corner& a, const Corner& b, const Corner& c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

double to_segment(const Corner& a, const Corner& b, const Corner& p) {
  const double x = b.x - a.x, y = b.y - a.y, square = x * x + y * y;
  const double t =
      square > 0 ? std::clamp(((p.x - a.x) * x + (p.y - a.y) * y) / square, 0.0, 1.0) : 0;
  return std::hypot(a.x + t * x - p.x, a.y + t * y - p.y);
}

double of_segments(const Corner& a, const Corner& b, const Corner& c, const Corner& d) {
  if (cross(a, b, c) * cross(a, b, d) < 0 && cross(c, d, a) * cross(c, d, b) < 0) return 0;
  return std::min(
      {to_segment(a, b, c), to_segment(a, b, d), to_segment(c, d, a), to_segment(c, d, b)});
}

/// The distance of the lines. Areas that lie in each other have 0, which is less.
double distance_of_lines(const Shape& one, const Shape& other) {
  double least = INFINITY;
  for (const Line& p : one.lines)
    for (const Line& q : other.lines)
      for (std::uint64_t i = 0; i < p.count; ++i)
        for (std::uint64_t j = 0; j < q.count; ++j)
          least = std::min(least, of_segments(p.at(i), p.at(std::min(i + 1, p.count - 1)), q.at(j),
                                              q.at(std::min(j + 1, q.count - 1))));
  return least;
}

Shape random_shape(std::mt19937* random, double x, double y, bool convex) {
  const auto number = [&] { return std::uniform_real_distribution<double>(-1, 1)(*random); };
  const int lines = convex ? 1 : std::uniform_int_distribution<int>(1, 3)(*random);
  Shape shape;
  for (int i = 0; i < lines; ++i) {
    const int corners = std::uniform_int_distribution<int>(convex ? 3 : 1, 9)(*random);
    const double turn = number();
    std::vector<Corner> line;
    for (int c = 0; c < corners; ++c)
      line.push_back(convex ? Corner{x + std::sin(turn + c * 2 * M_PI / corners),
                                     y + std::cos(turn + c * 2 * M_PI / corners)}
                            : Corner{x + number(), y + number()});
    if (convex) line.push_back(line[0]);
    shape.add(line);
  }
  return shape;
}

TEST(ShapeBounds, enclose_the_distance) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> place(-4, 4);
  for (int i = 0; i < 20000; ++i) {
    const Shape one = random_shape(&random, 0, 0, i % 2 == 0);
    const Shape other = random_shape(&random, place(random), place(random), i % 3 == 0);
    const DistanceBounds bounds = bound_distance(one, other, Corner{place(random), place(random)});
    const double distance = distance_of_lines(one, other);
    ASSERT_FALSE(bounds.touch);
    ASSERT_GE(bounds.greatest, distance - 1e-14);
    ASSERT_LE(bounds.least, distance + 1e-14);
  }
}

TEST(ShapeBounds, of_convex_shapes_that_are_apart_are_mostly_the_distance) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> place(2.5, 4);
  int equal = 0;
  for (int i = 0; i < 1000; ++i) {
    const Shape one = random_shape(&random, 0, 0, true);
    const Corner middle = {place(random), place(random)};
    const Shape other = random_shape(&random, middle.x, middle.y, true);
    const DistanceBounds bounds = bound_distance(one, other, middle);
    equal += bounds.greatest - bounds.least < 1e-12;
  }
  EXPECT_GT(equal, 950);
}

TEST(ShapeBounds, know_a_corner_in_common) {
  Shape one, other, beside;
  one.add({{0, 0}, {1, 0}, {1, 1}, {0, 0}});
  other.add({{3, 3}, {2, 2}});
  other.add({{1, 1}});
  beside.add({{1, 0.5}, {4, 0.5}});
  EXPECT_TRUE(bound_distance(one, other, Corner{1, 1.5}).touch);
  const DistanceBounds bounds = bound_distance(one, beside, Corner{2.5, 0.5});
  EXPECT_FALSE(bounds.touch);  // a corner in a line is no corner of it
  EXPECT_LE(bounds.least, 0);
  EXPECT_LE(bounds.greatest, 1e-15);
}

}  // namespace
}  // namespace gpujoin
