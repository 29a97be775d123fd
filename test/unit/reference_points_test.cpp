// Reference points: where they lie, and that their distances never separate two points within eps
// by more than reference_reach(), whatever the scale of the data. Joins by them are in the tests of
// range_join.

#include "engine/strategy/reference_points.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "engine/strategy/choose_strategy.h"
#include "engine/strategy/sample.h"
#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

const std::vector<Metric> kMetrics = {Metric::kL2, Metric::kL1, Metric::kLInf};

ReferencePoints place(const JoinRequest& request, std::uint32_t count,
                      ReferencePlacement placement) {
  const Sample sample = take_sample(request);
  return place_reference_points(request.metric(),
                                ordinary_sample(request.sides, sample.left, sample.right), count,
                                placement);
}

double distance(const ReferencePoints& references, std::uint32_t number, const Points& points,
                std::uint64_t row) {
  std::vector<double> distances(references.count);
  reference_distances(references, points.view(), row, row + 1, distances.data(), 1);
  return distances[number];
}

/// For each pair of rows, with its own distance as eps, and for each reference point. Returns how
/// much of a reach was needed at most.
double expect_in_reach(const Points& points, Metric metric, ReferencePlacement placement) {
  const JoinRequest request = make_request(points, nullptr, metric, 1);
  const ReferencePoints references = place(request, 5, placement);
  const std::uint32_t dims = points.dims();
  std::vector<double> a(dims), b(dims);
  double used = 0;
  for (std::uint64_t i = 0; i < points.rows(); ++i) {
    for (std::uint64_t j = 0; j < i; ++j) {
      const double eps = definition_of_distance(metric, points.row(i, a), points.row(j, b), dims);
      if (!std::isfinite(eps)) continue;
      const double reach = reference_reach(eps, dims, references.frame, false);
      const double single_reach = reference_reach(eps, dims, references.frame, true);
      for (std::uint32_t number = 0; number < references.count; ++number) {
        const double x = distance(references, number, points, i);
        const double y = distance(references, number, points, j);
        EXPECT_LE(std::fabs(x - y), reach) << "eps " << eps << ", rows " << i << ", " << j;
        const double single_x = static_cast<float>(x), single_y = static_cast<float>(y);
        EXPECT_LE(std::fabs(single_x - single_y), single_reach);
        used = std::max(used, std::fabs(x - y) / reach);
      }
    }
  }
  return used;
}

TEST(ReferencePoints, distances_of_near_points_are_near) {
  for (const Shape shape : kShapes) {
    for (const std::uint32_t dims : {1u, 2u, 5u, 17u, 90u}) {
      Random random(61 + dims);
      std::vector<double> values = make_values(shape, random, 30, dims);
      // Near pairs: two rows that differ little, in one column or in all.
      for (std::uint64_t row = 10; row < 30; ++row)
        for (std::uint32_t d = 0; d < dims; ++d)
          values[row * dims + d] =
              values[row % 10 * dims + d] *
              (row < 20 || d == 0 ? 1 + random.between(-1, 1) * std::exp2(-random.between(0, 52))
                                  : 1);
      for (const ScalarType scalar : {ScalarType::kFloat64, ScalarType::kFloat32})
        for (const Metric metric : kMetrics)
          for (const auto placement : {ReferencePlacement::kOuter, ReferencePlacement::kInner})
            expect_in_reach(Points(dims, values, scalar), metric, placement);
    }
  }
}

TEST(ReferencePoints, distances_of_near_points_are_near_at_every_scale) {
  for (const double scale : {0x1p-1074, 0x1p-1060, 1e-310, 1e-300, 1e-162, 1e-150, 1e-30, 1e30,
                             1e150, 1e154, 1e160, 1e300, 3e306}) {
    for (const std::uint32_t dims : {1u, 2u, 9u}) {
      Random random(62);
      std::vector<double> values = make_values(Shape::kUniform, random, 30, dims);
      for (double& x : values) x = std::round(x) * scale;
      for (const Metric metric : kMetrics)
        for (const auto placement : {ReferencePlacement::kOuter, ReferencePlacement::kInner})
          expect_in_reach(Points(dims, values), metric, placement);
    }
  }
}

TEST(ReferencePoints, distances_of_near_points_are_near_for_any_numbers) {
  for (const std::uint32_t dims : {1u, 2u, 6u}) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      Random random(63 + seed);
      std::vector<double> values(40 * dims);
      for (double& x : values) x = random.any_finite();
      for (std::uint64_t row = 20; row < 40; ++row)
        for (std::uint32_t d = 0; d < dims; ++d)
          values[row * dims + d] = random.index(2) == 0 ? above(values[(row - 20) * dims + d])
                                                        : values[(row - 20) * dims + d];
      for (const Metric metric : kMetrics)
        expect_in_reach(Points(dims, values), metric, ReferencePlacement::kOuter);
    }
  }
}

TEST(ReferencePoints, the_reach_is_hardly_more_than_eps) {
  // Along a line a reference distance differs by eps itself.
  for (const double offset : {0.0, 1e6}) {
    const Points points(1, {offset, offset + 1, offset + 2, offset + 7, offset + 7.5});
    for (const Metric metric : kMetrics) {
      const double used = expect_in_reach(points, metric, ReferencePlacement::kOuter);
      EXPECT_LE(used, 1);
      EXPECT_GT(used, 1 - 1e-12);
      const ReferencePoints references =
          place(make_request(points, nullptr, metric, 1), 2, ReferencePlacement::kOuter);
      const double eps = 1e-3 * references.frame.scale;
      EXPECT_LT(reference_reach(1e-3, 1, references.frame, false), eps * (1 + 1e-9));
      EXPECT_LT(reference_reach(1e-3, 1, references.frame, true), eps * 1.01);
    }
  }
}

TEST(ReferencePoints, what_the_sample_misses_is_cut) {
  // One row in 100 is sampled; the largest ones, beyond any scale, mostly are not.
  constexpr std::uint64_t kRows = 51200;
  Random random(64);
  std::vector<double> values = make_values(Shape::kUniform, random, kRows, 2);
  const std::vector<double> far = {kMax, -kMax, 1e200, -1e155, 1e20};
  for (int i = 0; i < 100; ++i) values[random.index(2 * kRows)] = random.pick(far);
  const Points points(2, values);
  for (const Metric metric : kMetrics) {
    const ReferencePoints references =
        place(make_request(points, nullptr, metric, 1), 3, ReferencePlacement::kOuter);
    for (std::uint64_t row = 0; row < kRows; ++row) {
      const double x = distance(references, 0, points, row);
      EXPECT_GE(x, 0);
      EXPECT_LE(x, references.frame.most);
    }
  }
}

TEST(ReferencePoints, joins_with_rows_that_the_sample_misses_are_exact) {
  Random random(65);
  std::vector<double> values = make_values(Shape::kUniform, random, 2000, 5);
  for (std::uint64_t row = 0; row < 2000; row += 25) {
    const double far = random.pick(std::vector<double>{1e6, 1e154, 1e200, -1e300, kNan, kInf});
    for (std::uint64_t twin = row; twin < row + 3; ++twin)
      for (std::uint32_t d = 0; d < 5; ++d) values[twin * 5 + d] = far;
  }
  const Points points(5, values);
  for (const Metric metric : kMetrics) {
    JoinRequest request = make_request(points, nullptr, metric, 12);
    request.knobs.index = IndexMethod::kReferencePoints;
    const Oracle oracle(points, nullptr, metric, 12);
    for (const EngineTable* const engine : engines())
      EXPECT_TRUE(matches_oracle(run_join(*engine, request), request, oracle));
  }
}

TEST(ReferencePoints, outer_ones_lie_at_the_corners_of_the_data) {
  Random random(66);
  const Points points(7, make_values(Shape::kUniform, random, 300, 7));  // all are sampled
  const JoinRequest request = make_request(points, nullptr, Metric::kL2, 1);
  std::vector<double> low(7, kInf), high(7, -kInf), row(7);
  for (std::uint64_t i = 0; i < points.rows(); ++i)
    for (std::uint32_t d = 0; d < 7; ++d) {
      low[d] = std::min(low[d], points.row(i, row)[d]);
      high[d] = std::max(high[d], points.row(i, row)[d]);
    }
  for (std::uint32_t count = 1; count <= kMaxReferencePoints; ++count) {
    const ReferencePoints references = place(request, count, ReferencePlacement::kOuter);
    ASSERT_EQ(references.count, count);
    std::set<std::vector<double>> different;
    for (std::uint32_t number = 0; number < count; ++number) {
      const double* const point = references.point(number);
      different.emplace(point, point + 7);
      for (std::uint32_t d = 0; d < 7; ++d) {
        const double x = point[d] / references.frame.scale;
        EXPECT_TRUE(x == high[d] || (x == low[d] && number > 0));
      }
    }
    EXPECT_GE(different.size(), std::min(count, 15u));
  }
}

TEST(ReferencePoints, inner_ones_lie_around_the_mean) {
  const Points points(2, {0, 0, 4, 0, 0, 8, 4, 8});
  const JoinRequest request = make_request(points, nullptr, Metric::kL2, 1);
  const ReferencePoints references = place(request, 5, ReferencePlacement::kInner);
  const std::vector<double> expected = {2, 4, 3, 4, 1, 4, 2, 8, 2, 0};
  ASSERT_EQ(references.coordinates.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(references.coordinates[i] / references.frame.scale, expected[i]);
}

TEST(ReferencePoints, are_the_same_each_time) {
  Random random(67);
  const Points points(9, make_values(Shape::kExponential, random, 5000, 9));
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 3);
  request.knobs.index = IndexMethod::kReferencePoints;
  const Strategy strategy = choose_strategy(request);
  const ReferencePoints first = place_reference_points(request, strategy);
  const ReferencePoints second = place_reference_points(request, strategy);
  EXPECT_EQ(first.count, strategy.reference_points);
  EXPECT_EQ(first.coordinates, second.coordinates);
  EXPECT_EQ(first.frame.scale, second.frame.scale);
  EXPECT_EQ(first.frame.most, second.frame.most);
}

TEST(ReferencePoints, data_without_a_finite_row_has_some) {
  const Points points(2, {kNan, 1, 2, kInf});
  const ReferencePoints references =
      place(make_request(points, nullptr, Metric::kL2, 1), 4, ReferencePlacement::kInner);
  EXPECT_EQ(references.coordinates, std::vector<double>(8));
}

}  // namespace
}  // namespace gpujoin::test
