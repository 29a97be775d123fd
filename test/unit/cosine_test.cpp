// What src/core/cosine.h proves: stored directions of two vectors within eps lie within
// direction_radius(), and those within sure_direction_radius() are of vectors within eps, whatever
// is rounded on the way.

#include "core/cosine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "oracle.h"
#include "points.h"

namespace gpujoin::test {
namespace {

/// The distance of stored directions as an L2 join computes it.
double distance_of_directions(const std::vector<double>& a, const std::vector<double>& b) {
  const auto dims = static_cast<std::uint32_t>(a.size());
  std::vector<float> x(dims), y(dims);
  write_direction(a.data(), dims, x.data());
  write_direction(b.data(), dims, y.data());
  const std::vector<double> wide_x(x.begin(), x.end()), wide_y(y.begin(), y.end());
  return definition_of_distance(Metric::kL2, wide_x.data(), wide_y.data(), dims);
}

/// The narrowest radius that finds a and b is wide enough; returns how much of it they need.
double expect_found(const std::vector<double>& a, const std::vector<double>& b) {
  const auto dims = static_cast<std::uint32_t>(a.size());
  const double eps = definition_of_cosine_distance(a.data(), b.data(), dims);
  const double between = distance_of_directions(a, b), radius = direction_radius(eps, dims);
  EXPECT_LE(between, radius) << "dims " << dims << ", eps " << eps;
  return between / radius;
}

/// Where their directions surely match, a and b do, at every eps.
void expect_sure(const std::vector<double>& a, const std::vector<double>& b, double eps) {
  const auto dims = static_cast<std::uint32_t>(a.size());
  if (distance_of_directions(a, b) > sure_direction_radius(eps, dims)) return;
  EXPECT_LE(definition_of_cosine_distance(a.data(), b.data(), dims), eps) << "dims " << dims;
}

/// The least eps at which directions at a distance surely match.
double least_sure_eps(double between, std::uint32_t dims) {
  double low = 0, high = 2;
  while (above(low) < high) {
    const double middle = low + (high - low) / 2;
    (sure_direction_radius(middle, dims) >= between ? high : low) = middle;
  }
  return high;
}

std::vector<double> random_vector(Random& random, std::uint32_t dims, double scale) {
  std::vector<double> a(dims);
  for (double& x : a) x = scale * random.between(-1, 1) * random.unit();
  return a;
}

TEST(Cosine, directions_of_near_vectors_are_near) {
  Random random(20);
  for (int i = 0; i < 20000; ++i) {
    const std::uint32_t dims = 1 + static_cast<std::uint32_t>(random.index(30));
    const double tilt = std::pow(10, random.between(-17, 1));
    const std::vector<double> a =
        random_vector(random, dims, std::pow(10, random.between(-100, 100)));
    const double stretch = std::pow(10, random.between(-30, 30));
    std::vector<double> b = a;
    for (double& x : b) x = stretch * (x + a[random.index(dims)] * random.between(-tilt, tilt));
    expect_found(a, b);
    expect_found(a, a);
    for (double& x : b) x = -x;
    expect_found(a, b);
  }
}

TEST(Cosine, directions_are_found_in_as_many_dimensions_as_there_may_be) {
  Random random(21);
  for (const std::uint32_t dims : {100u, 1000u, 16000u}) {
    for (int i = 0; i < 20; ++i) {
      const std::vector<double> a = random_vector(random, dims, 1);
      std::vector<double> b = random_vector(random, dims, 1);
      expect_found(a, b);
      for (std::uint32_t d = 0; d < dims; ++d) b[d] = a[d] + 1e-9 * b[d];
      expect_found(a, b);
      // Sums that lose what comes after their first terms.
      std::sort(b.begin(), b.end(), std::greater<>());
      expect_found(b, b);
    }
  }
}

TEST(Cosine, what_sums_lose_is_within_the_margin) {
  // 1 swallows each 2^-54 that comes after it, so that by the definition these have distance 0.
  for (const std::uint32_t dims : {300u, 16000u}) {
    std::vector<double> a(dims, 0x1p-27), b(dims, -0x1p-27);
    a[0] = b[0] = 1;
    ASSERT_EQ(definition_of_cosine_distance(a.data(), b.data(), dims), 0);
    EXPECT_GT(expect_found(a, b), 0.5) << "the margin is wider than need be";
    EXPECT_GT(distance_of_directions(a, b), 0x1p-23) << "more than single precision moves them";
  }
}

TEST(Cosine, the_radius_is_no_wider_than_need_be) {
  Random random(22);
  for (const double tilt : {1.0, 1e-3, 1e-5}) {
    double needed = 0;
    for (int i = 0; i < 1000; ++i) {
      const std::vector<double> a = {random.between(1, 2), 0, 1};
      needed = std::max(needed, expect_found(a, {a[0], tilt * random.unit(), 1}));
    }
    EXPECT_GT(needed, 0.97) << "tilt " << tilt;
  }
}

TEST(Cosine, directions_that_are_surely_near_are_of_near_vectors) {
  Random random(24);
  for (int i = 0; i < 20000; ++i) {
    const std::uint32_t dims =
        i % 500 == 0 ? 16000 : 1 + static_cast<std::uint32_t>(random.index(30));
    const double tilt = std::pow(10, random.between(-17, 1));
    const std::vector<double> a =
        random_vector(random, dims, std::pow(10, random.between(-100, 100)));
    std::vector<double> b = a;
    for (double& x : b) x += a[random.index(dims)] * random.between(-tilt, tilt);
    const double between = distance_of_directions(a, b);
    if (between > 1.99) continue;  // no eps is large enough
    const double eps = least_sure_eps(between, dims);
    ASSERT_GT(eps, between * between / 2);
    expect_sure(a, b, eps);
    expect_sure(a, a, least_sure_eps(0, dims));
    expect_sure(a, b, definition_of_cosine_distance(a.data(), b.data(), dims));
  }
  EXPECT_LT(sure_direction_radius(0, 3), 0);
  EXPECT_LT(sure_direction_radius(1e-16, 3), 0);
}

TEST(Cosine, most_of_a_radius_is_sure) {
  for (const double eps : {1e-8, 1e-4, 0.1, 1.0, 1.9})
    EXPECT_GT(sure_direction_radius(eps, 64), 0.998 * direction_radius(eps, 64)) << eps;
}

TEST(Cosine, vectors_whose_dot_product_may_overflow_are_told) {
  float direction[1];
  for (const double x : {0x1p511, 1.3e154, -0x1.1p510})
    EXPECT_TRUE(write_direction(&x, 1, direction));
  for (const double x : {0x1p510, 1e100, -1e-100}) EXPECT_FALSE(write_direction(&x, 1, direction));
}

TEST(Cosine, no_radius_leaves_out_opposite_vectors_at_two) {
  const std::vector<double> a = {0.3, -0.7, 0.1}, b = {-0.3, 0.7, -0.1};
  for (const double eps : {2.0, 3.0, 1e300, kMax})
    EXPECT_LE(distance_of_directions(a, b), direction_radius(eps, 3));
  EXPECT_LT(direction_radius(1.9, 3), 2);
  EXPECT_EQ(direction_radius(kMax, 3), direction_radius(2, 3));
}

TEST(Cosine, vectors_without_a_direction_become_nan) {
  float direction[2];
  for (const double x : {0.0, 1e-200, 1e200, kInf, kNan}) {
    const double point[] = {x, x};
    EXPECT_FALSE(write_direction(point, 2, direction));
    EXPECT_TRUE(std::isnan(direction[0]) && std::isnan(direction[1])) << x;
  }
  const double half[] = {1, kInf};
  write_direction(half, 2, direction);
  EXPECT_TRUE(std::isnan(direction[0]) && std::isnan(direction[1]));
}

TEST(Cosine, short_vectors_are_told_and_lie_within_any_direction) {
  Random random(23);
  for (int i = 0; i < 2000; ++i) {
    const std::uint32_t dims =
        i % 100 == 0 ? 16000 : 1 + static_cast<std::uint32_t>(random.index(9));
    std::vector<double> a = random_vector(random, dims, std::pow(10, random.between(-162, -150)));
    std::vector<double> b = random_vector(random, dims, std::pow(10, random.between(-162, 100)));
    a[0] = random.between(1, 9) * 1e-161;
    std::vector<float> direction(dims);
    ASSERT_TRUE(write_direction(a.data(), dims, direction.data()));
    const double distance = definition_of_cosine_distance(a.data(), b.data(), dims);
    if (std::isnan(distance)) continue;
    ASSERT_LT(distance_of_directions(a, b), kAnyDirection);
  }
  std::vector<double> underflowing(16000, 0x1p-538);
  underflowing[0] = 0x1p-537;
  std::vector<double> opposite = underflowing;
  for (double& x : opposite) x = -x;
  EXPECT_LT(distance_of_directions(underflowing, opposite), kAnyDirection);
  EXPECT_GT(distance_of_directions(underflowing, opposite), 100);
  const float least[] = {1e-45f};
  float direction[1];
  EXPECT_FALSE(write_direction(least, 1, direction)) << "no float is that small";
  EXPECT_EQ(direction[0], 1);
}

}  // namespace
}  // namespace gpujoin::test
