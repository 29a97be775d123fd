// Range joins by cosine distance on data made to hurt it, with every kind of plan against brute
// force: vectors that have no direction or hardly one, parallel and opposite ones, angles beside
// eps. Random data is in range_join_property_test.cpp.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

class RangeJoinCosine : public EngineTest {
 protected:
  /// Self-joins of the values, as float64 and float32, for each eps.
  void expect_exact(std::uint32_t dims, const std::vector<double>& values,
                    const std::vector<double>& all_eps) {
    for (const ScalarType scalar : {ScalarType::kFloat64, ScalarType::kFloat32}) {
      const Points points(dims, values, scalar);
      for (const double eps : all_eps)
        EXPECT_TRUE(every_plan_matches(engine(), points, nullptr, Metric::kCosine, eps));
    }
  }

  RunResult run(const Points& points, double eps, Output::Kind output) {
    JoinRequest request = make_request(points, nullptr, Metric::kCosine, eps);
    ask(request, output);
    return run_join(engine(), request);
  }
};
GPUJOIN_ON_EVERY_ENGINE(RangeJoinCosine);

const std::vector<double> kAllEps = {0, 1e-16, 1e-9, 0.3, 1, below(2), 2, 3, 1e300, kMax};

/// Points on a circle, at these angles.
std::vector<double> circle(const std::vector<double>& angles, double length) {
  std::vector<double> values;
  for (const double angle : angles)
    values.insert(values.end(), {length * std::cos(angle), length * std::sin(angle)});
  return values;
}

TEST_P(RangeJoinCosine, lengths_do_not_matter) {
  const Points points(2, {3, 4, 300, 400, -3, -4, -4, 3, 0, 0});
  EXPECT_EQ(run(points, 0, Output::kTotal).total, 4u + 1 + 1) << "(0, 0) not even matches itself";
  EXPECT_EQ(run(points, 1, Output::kTotal).total, 4u + 1 + 1 + 2 * 3);
  EXPECT_EQ(run(points, 2, Output::kTotal).total, 16u);
  const std::vector<RowCount> counts = {{0, 2}, {1, 2}, {2, 1}, {3, 1}, {4, 0}};
  EXPECT_EQ(run(points, 0, Output::kCountPerRow).counts, counts);
  expect_exact(2, {3, 4, 300, 400, -3, -4, -4, 3, 0, 0, 3e-9, 4e-9, 6e9, 8e9}, kAllEps);
}

TEST_P(RangeJoinCosine, vectors_without_a_direction_match_nothing) {
  const std::vector<double> values = {0,    0,    -0.0,  0,     1e-200, 1e-200, 1e200, 1, kNan,
                                      1,    kInf, 1,     -kInf, -kInf,  1,      1,     2, 2,
                                      kMax, kMax, 1e200, 0,     1e-200, 0,      -1,    -1};
  for (const double eps : kAllEps)
    EXPECT_TRUE(every_plan_matches(engine(), Points(2, values), nullptr, Metric::kCosine, eps));
  EXPECT_EQ(run(Points(2, values), kMax, Output::kTotal).total, 9u) << "(1, 1), (2, 2), (-1, -1)";
  expect_exact(1, {0, -0.0}, kAllEps);
  expect_exact(1, {0, 1, -1, 5, 1e-30, -1e30}, kAllEps);
}

TEST_P(RangeJoinCosine, squares_that_underflow_in_part) {
  // What the definition finds of such vectors has little to do with their angles.
  std::vector<double> values;
  Random random(71);
  for (int i = 0; i < 30; ++i) {
    const double scale = std::pow(10, random.between(-163, -140));
    for (int d = 0; d < 3; ++d) values.push_back(scale * random.between(-1, 1));
  }
  values.insert(values.end(), {1, 2, 3, -1, 2, 3, 1e150, 0, 1, 0x1p-537, 0, 0, 0, 0x1p-537, 0});
  for (const double eps : {0.0, 1e-9, 0.1, 1.0, 2.0})
    EXPECT_TRUE(every_plan_matches(engine(), Points(3, values), nullptr, Metric::kCosine, eps));
  const Points plain(3, {1, 2, 3, 4, 5, 6, -1, 0, 2}), faint(3, values);
  for (const double eps : {0.01, 1.0}) {
    EXPECT_TRUE(every_plan_matches(engine(), plain, &faint, Metric::kCosine, eps));
    EXPECT_TRUE(every_plan_matches(engine(), faint, &plain, Metric::kCosine, eps));
  }
}

TEST_P(RangeJoinCosine, lengths_at_the_edge_of_overflow) {
  const std::vector<double> values = {1e154,  1e153,  1.3e154, 1e153,  1.34e154, 0,      1.3408e154,
                                      0,      1e150,  1e150,   -1e154, 1e154,    1e-140, 2e-140,
                                      1e-144, 2e-144, 1,       2,      9.4e153,  9.4e153};
  for (const double eps : kAllEps)
    EXPECT_TRUE(every_plan_matches(engine(), Points(2, values), nullptr, Metric::kCosine, eps));
}

TEST_P(RangeJoinCosine, angles_beside_eps_are_told_apart) {
  for (const double eps : {1e-3, 0.3, 1.0, 1.9}) {
    const double angle = std::acos(1 - eps);
    std::vector<double> angles;
    for (int k = -3; k <= 3; ++k) {
      const double at = k * angle;
      angles.insert(angles.end(), {at, at + 1e-12, at - 1e-12, at + 1e-15, at - 1e-15});
    }
    for (const double length : {1.0, 1e-7, 3e5})
      if (!kSanitized || (length == 1) == (eps < 1))
        expect_exact(2, circle(angles, length), {eps, below(eps), above(eps), eps + 1e-12});
  }
}

TEST_P(RangeJoinCosine, eps_is_the_distance_of_a_pair) {
  Random random(72);
  for (const std::uint32_t dims : {1u, 2u, 3u, 8u, 9u, 40u, 300u}) {
    for (const Shape shape : {Shape::kUniform, Shape::kClustered, Shape::kOffset}) {
      const std::vector<double> values = make_values(shape, random, 40, dims);
      const double eps = definition_of_cosine_distance(values.data(), values.data() + dims, dims);
      const Points points(dims, values);
      for (const double near : {eps, below(eps), above(eps)})
        EXPECT_TRUE(every_plan_matches(engine(), points, nullptr, Metric::kCosine, std::abs(near)));
    }
  }
}

TEST_P(RangeJoinCosine, a_row_that_rounding_keeps_from_itself_counts_once_or_not_at_all) {
  // The same vectors several times: copies match each other exactly when a row matches itself.
  Random random(73);
  std::vector<double> values;
  for (int i = 0; i < 25; ++i) {
    const std::vector<double> point = make_values(Shape::kUniform, random, 1, 3);
    for (int copy = 0; copy < 3; ++copy) values.insert(values.end(), point.begin(), point.end());
  }
  const Points points(3, values);
  const std::uint64_t total =
      Oracle(points, nullptr, Metric::kCosine, 0).total(PairSelection::kAll);
  ASSERT_GT(total, 0u);
  ASSERT_LT(total, 9u * 25) << "the data has no such row";
  expect_exact(3, values, {0, 1.1e-16, 2.3e-16, 1e-15});
  EXPECT_TRUE(every_plan_matches(engine(), points, &points, Metric::kCosine, 0));
}

TEST_P(RangeJoinCosine, vectors_that_only_rounding_makes_parallel_match_at_eps_zero) {
  const std::uint32_t dims = 2000;  // see what_sums_lose_is_within_the_margin in cosine_test.cpp
  std::vector<double> values;
  for (const double rest : {0x1p-27, -0x1p-27, 0.0, 0x1p-26}) {
    values.push_back(1);
    values.insert(values.end(), dims - 1, rest);
  }
  const Points points(dims, values);
  EXPECT_EQ(run(points, 0, Output::kTotal).total, 9u + 1);
  EXPECT_TRUE(every_plan_matches(engine(), points, nullptr, Metric::kCosine, 0));
}

TEST_P(RangeJoinCosine, clusters_of_directions_in_many_dimensions) {
  Random random(74);
  for (const std::uint32_t dims : {16u, 384u}) {
    const std::vector<double> centers = make_values(Shape::kUniform, random, 6, dims);
    std::vector<double> values;
    for (std::uint64_t row = 0; row < 90; ++row) {
      const double length = std::pow(10, random.between(-5, 5));
      for (std::uint32_t d = 0; d < dims; ++d)
        values.push_back(length * (centers[row % 6 * dims + d] + random.between(-3, 3)));
    }
    expect_exact(dims, values, {1e-4, 0.005, 0.9});
  }
}

TEST_P(RangeJoinCosine, plans_and_reports_as_of_directions) {
  // Half a turn of directions, of many lengths: an index keeps most pairs from being compared.
  std::vector<double> values;
  for (int i = 0; i < 4000; ++i) {
    const double angle = i * 3.14159 / 4000, length = 1 + i % 97;
    values.insert(values.end(), {length * std::cos(angle), length * std::sin(angle)});
  }
  const Points points(2, values);
  JoinRequest request = make_request(points, nullptr, Metric::kCosine, 1e-6);
  ask(request, Output::kPairsWithDistances);
  const RunResult result = run_join(engine(), request);
  EXPECT_TRUE(matches_oracle(result, request, Oracle(points, nullptr, Metric::kCosine, 1e-6)));
  // A device compares tiles, whatever they hold, in numbers that are too short for such a radius.
  if (is_device(engine())) return;
  EXPECT_LT(result.stats.rechecked, result.total / 10) << "directions prove most pairs";
  EXPECT_LT(result.stats.candidates, 4000u * 100);
  EXPECT_LT(result.stats.strategy.estimate().candidates, 4000.0 * 100);
}

TEST_P(RangeJoinCosine, directions_count_against_the_memory_limit) {
  if (is_device(engine())) GTEST_SKIP() << "directions are found on the device";
  Random random(75);
  const Points points(64, make_values(Shape::kUniform, random, 20000, 64));
  JoinRequest request = make_request(points, nullptr, Metric::kCosine, 0.01);
  ask(request, Output::kTotal);
  request.resources.memory_limit = 4 << 20;  // of directions alone there are 5 MB
  const RunResult result = run_join(engine(), request);
  EXPECT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
  EXPECT_GT(result.stats.parts, 1u);
  EXPECT_LE(result.stats.memory_peak, request.resources.memory_limit);
}

}  // namespace
}  // namespace gpujoin::test
