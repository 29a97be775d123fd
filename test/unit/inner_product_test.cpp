// Lifted points: their distances bound every inner product that single precision may compute.
#include "pg/geometry/inner_product.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/distance.h"

namespace gpujoin {
namespace {

using Point = std::vector<float>;

double squares_of(const Point& point) {
  double squares = 0;
  for (const float x : point) squares += static_cast<double>(x) * x;
  return squares;
}

double largest_norm(const std::vector<Point>& points) {
  double most = 0;
  for (const Point& point : points) most = std::fmax(most, squares_of(point));
  return std::sqrt(most);
}

/// What sums in single precision have: from the left, from the right, by eights, with one rounding
/// of each product and sum.
std::vector<double> single_products(const Point& a, const Point& b) {
  float forward = 0, backward = 0, fused = 0, lanes[8] = {};
  for (std::size_t d = 0; d < a.size(); ++d) {
    forward += a[d] * b[d];
    backward += a[a.size() - 1 - d] * b[a.size() - 1 - d];
    fused = std::fma(a[d], b[d], fused);
    lanes[d % 8] += a[d] * b[d];
  }
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  return {forward, backward, fused, sum};
}

struct Lifted {
  std::vector<Point> points;
  double norm, scale;
};

Lifted lift(std::vector<Point> points, bool left, double other_norm) {
  const double raw = largest_norm(points);
  const double scale = left ? lifting_scale(raw, other_norm) : 1;
  for (Point& point : points) {
    for (float& x : point) x = static_cast<float>(x * scale);
    const float added = lifted_coordinate(squares_of(point), raw * scale);
    point.push_back(left ? added : 0);
    point.push_back(left ? 0 : added);
  }
  return {points, raw * scale, scale};
}

/// Of all pairs how far squared distances are from what they stand for, as a share of the slack.
double worst_share(const std::vector<Point>& left, const std::vector<Point>& right) {
  const double norm = largest_norm(right);
  const Lifted a = lift(left, true, norm), b = lift(right, false, 0);
  const auto dims = static_cast<std::uint32_t>(left[0].size());
  const double slack = lifting_slack(a.norm, b.norm, dims);
  double worst = 0;
  for (std::size_t i = 0; i < left.size(); ++i)
    for (std::size_t j = 0; j < right.size(); ++j) {
      const double distance =
          raw_distance<Metric::kL2>(a.points[i].data(), b.points[j].data(), dims + kLiftedDims);
      for (const double product : single_products(left[i], right[j])) {
        const double stands_for = a.norm * a.norm + b.norm * b.norm - 2 * a.scale * product;
        worst = std::fmax(worst, std::fabs(distance - stands_for) / slack);
      }
    }
  return worst;
}

std::vector<Point> random_points(std::mt19937* random, int count, int dims, double size) {
  std::normal_distribution<double> normal;
  std::vector<Point> points(static_cast<std::size_t>(count));
  for (Point& point : points) {
    do {
      point.clear();
      // Norms differ by much, and so do the magnitudes of coordinates.
      const double length = size * std::exp2(-8 * std::fabs(normal(*random)));
      for (int d = 0; d < dims; ++d)
        point.push_back(static_cast<float>(length * normal(*random) *
                                           std::exp2(d % 7 == 0 ? -20 : 0) / std::sqrt(dims)));
    } while (!can_lift(squares_of(point)));
  }
  return points;
}

TEST(InnerProduct, slack_bounds_all_roundings) {
  std::mt19937 random(7);
  for (const int dims : {1, 2, 3, 8, 100, 1000, 5000})
    for (const double left : {1e-3, 1.0, 1e6})
      for (const double right : {1e-6, 1.0, 3.0, 1e12}) {
        const auto a = random_points(&random, 12, dims, left),
                   b = random_points(&random, 12, dims, right);
        EXPECT_LE(worst_share(a, b), 1) << dims << " dimensions, " << left << ", " << right;
      }
}

TEST(InnerProduct, slack_bounds_products_that_underflow) {
  const std::vector<Point> left = {{1e-14F, 1e-30F, 1e-38F}, {1e-14F, 0, 0}, {0, 2e-14F, 3e-14F}};
  const std::vector<Point> right = {{1e-30F, 1e-14F, 1e-25F}, {0, 0, 1e-14F}, {2e-14F, 0, 1e-45F}};
  EXPECT_LE(worst_share(left, right), 1);
}

TEST(InnerProduct, equal_vectors_and_sums_that_cancel) {
  std::vector<Point> left(4), right(4);
  for (int d = 0; d < 999; ++d)
    for (std::size_t i = 0; i < 4; ++i) {
      left[i].push_back(d % 2 == 0 ? 1.1F : -1.3F);
      right[i].push_back(i % 2 == 0 ? 0.7F : (d % 2 == 0 ? 1.1F : -1.3F));
    }
  EXPECT_LE(worst_share(left, right), 1);
  EXPECT_LE(worst_share(left, left), 1);
}

TEST(InnerProduct, zero_vectors_have_the_norm_of_all) {
  EXPECT_LE(worst_share({{0, 0}, {3, 4}}, {{0, 0}, {1, 0}}), 1);
  EXPECT_EQ(lifting_scale(0, 5), 1);
  EXPECT_EQ(lifting_scale(5, 0), 1);
  EXPECT_EQ(lifted_coordinate(25, 5), 0);
  EXPECT_EQ(lifted_coordinate(25.000001, 5), 0);
}

TEST(InnerProduct, scale_brings_norms_near_each_other) {
  for (const double norm : {1e-14, 0.3, 1.0, 7.5, 1e18})
    for (const double wanted : {1e-14, 0.5, 1.0, 1e18}) {
      const double scale = lifting_scale(norm, wanted);
      EXPECT_EQ(std::frexp(scale, std::make_unique<int>().get()), 0.5) << "a power of two";
      EXPECT_LT(norm * scale / wanted, 2);
      EXPECT_GT(norm * scale / wanted, 0.5);
    }
}

TEST(InnerProduct, only_points_that_stay_in_range_are_lifted) {
  EXPECT_TRUE(can_lift(0));
  EXPECT_TRUE(can_lift(1));
  EXPECT_FALSE(can_lift(1e-46));
  EXPECT_FALSE(can_lift(1e38));
  EXPECT_FALSE(can_lift(INFINITY));
  EXPECT_FALSE(can_lift(NAN));
}

}  // namespace
}  // namespace gpujoin
