// Range joins of two datasets: empty, disjoint, unequal and overlapping sides, against brute force.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

class RangeJoinOfTwo : public EngineTest {
 protected:
  /// In both directions, as float64 and float32, in each metric.
  void expect_exact(std::uint32_t dims, const std::vector<double>& a, const std::vector<double>& b,
                    double eps) {
    for (const ScalarType scalar : {ScalarType::kFloat64, ScalarType::kFloat32}) {
      const Points left(dims, a, scalar), right(dims, b, scalar);
      for (const Metric metric : kMetrics) {
        EXPECT_TRUE(every_plan_matches(engine(), left, &right, metric, eps));
        EXPECT_TRUE(every_plan_matches(engine(), right, &left, metric, eps)) << "swapped";
      }
    }
  }
};
GPUJOIN_ON_EVERY_ENGINE(RangeJoinOfTwo);

TEST_P(RangeJoinOfTwo, an_empty_side_has_no_pairs) {
  expect_exact(2, {}, {1, 2, 3, 4}, 10);
  expect_exact(2, {}, {}, 10);
}

TEST_P(RangeJoinOfTwo, dimensions_of_an_empty_side_do_not_matter) {
  const Points points(3, {1, 2, 3});
  Points none(7, {});
  for (const Output::Kind output :
       {Output::kPairs, Output::kPairsWithDistances, Output::kCountPerRow, Output::kTotal}) {
    JoinRequest request = make_request(points, &none, Metric::kL2, 1);
    ask(request, output);
    EXPECT_TRUE(matches_oracle(run_join(engine(), request), request,
                               Oracle(points, &none, Metric::kL2, 1)));
    request = make_request(none, &points, Metric::kL2, 1);
    ask(request, output);
    const RunResult result = run_join(engine(), request);
    EXPECT_EQ(result.status.code, StatusCode::kEnd);
    EXPECT_EQ(result.total, 0u);
  }
}

TEST_P(RangeJoinOfTwo, sides_far_apart_have_no_pairs) {
  Random random(61);
  std::vector<double> far = make_values(Shape::kUniform, random, 40, 2);
  for (double& x : far) x += 1e6;
  expect_exact(2, make_values(Shape::kUniform, random, 30, 2), far, 50);
}

TEST_P(RangeJoinOfTwo, one_point_against_many) {
  Random random(62);
  for (const std::uint32_t dims : {1u, 2u, 5u, 11u})
    expect_exact(dims, std::vector<double>(dims, 0.0),
                 make_values(Shape::kUniform, random, 100, dims), 40);
}

TEST_P(RangeJoinOfTwo, sides_that_overlap_in_part) {
  Random random(63);
  std::vector<double> shifted = make_values(Shape::kLattice, random, 50, 2);
  for (double& x : shifted) x += 4;
  expect_exact(2, make_values(Shape::kLattice, random, 80, 2), shifted, 1);
}

TEST_P(RangeJoinOfTwo, a_side_with_itself_is_the_self_join) {
  Random random(64);
  const Points points(3, make_values(Shape::kClustered, random, 120, 3));
  const JoinRequest self = make_request(points, nullptr, Metric::kL2, 1);
  const JoinRequest two = make_request(points, &points, Metric::kL2, 1);
  const RunResult result = run_join(engine(), two);
  EXPECT_EQ(result.status.code, StatusCode::kEnd);
  EXPECT_EQ(result.pairs, run_join(engine(), self).pairs);
}

TEST_P(RangeJoinOfTwo, swapped_sides_give_swapped_pairs) {
  Random random(65);
  const Points left(2, make_values(Shape::kExponential, random, 150, 2));
  const Points right = Points(2, make_values(Shape::kExponential, random, 70, 2)).with_ids([] {
    std::vector<std::int64_t> ids(70);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = -7 * static_cast<std::int64_t>(i);
    return ids;
  }());
  JoinRequest request = make_request(left, &right, Metric::kL2, 2);
  ask(request, Output::kPairsWithDistances);
  std::vector<FoundPair> pairs = run_join(engine(), request).pairs;
  ASSERT_GT(pairs.size(), 100u);
  for (FoundPair& pair : pairs) std::swap(pair.id1, pair.id2);
  std::sort(pairs.begin(), pairs.end());
  request = make_request(right, &left, Metric::kL2, 2);
  ask(request, Output::kPairsWithDistances);
  EXPECT_EQ(run_join(engine(), request).pairs, pairs);
}

TEST_P(RangeJoinOfTwo, special_values_on_either_side) {
  const std::vector<double> special = {kNan, 0, kInf,  kInf,      0, 0,     -0.0,
                                       0,    1, -kInf, kDenormal, 0, 1e300, -1e300};
  const std::vector<double> plain = {0, 0, 1, 1, 1e300, -1e300, 0, kDenormal};
  for (const double eps : {0.0, 1.0, 1e299}) {
    for (const Metric metric : kMetrics) {
      const Points a(2, special), b(2, plain);
      EXPECT_TRUE(every_plan_matches(engine(), a, &b, metric, eps));
      EXPECT_TRUE(every_plan_matches(engine(), b, &a, metric, eps));
      EXPECT_TRUE(every_plan_matches(engine(), a, &a, metric, eps));
    }
  }
  const Points nothing(2, {kNan, kNan, kInf, 0}), plain_points(2, plain);
  EXPECT_TRUE(every_plan_matches(engine(), nothing, &plain_points, Metric::kL2, 1));
  EXPECT_TRUE(every_plan_matches(engine(), plain_points, &nothing, Metric::kL2, 1));
}

TEST_P(RangeJoinOfTwo, equal_ids_on_both_sides_do_not_matter) {
  const Points left = Points(1, {1, 2, 3, 4}).with_ids({1, 1, 2, 2});
  const Points right = Points(1, {1, 2, 3, 4, 5}).with_ids({2, 1, 1, 2, 2});
  EXPECT_TRUE(every_plan_matches(engine(), left, &right, Metric::kL2, 1));
}

}  // namespace
}  // namespace gpujoin::test
