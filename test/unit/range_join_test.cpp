// Range joins on data made by hand to hurt, each with every kind of plan against brute force.
// Random data is in range_join_property_test.cpp, batches and limits in
// range_join_batches_test.cpp.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

const std::vector<Metric> kMetrics = {Metric::kL2, Metric::kL1, Metric::kLInf};
const std::vector<ScalarType> kScalars = {ScalarType::kFloat64, ScalarType::kFloat32};

class RangeJoin : public EngineTest {
 protected:
  /// Self-joins of the values, as float64 and float32, in each metric and for each eps.
  void expect_exact(std::uint32_t dims, const std::vector<double>& values,
                    const std::vector<double>& all_eps) {
    for (const ScalarType scalar : kScalars) {
      const Points points(dims, values, scalar);
      for (const Metric metric : kMetrics)
        for (const double eps : all_eps)
          EXPECT_TRUE(every_plan_matches(engine(), points, nullptr, metric, eps));
    }
  }

  std::uint64_t count_pairs(const Points& points, Metric metric, double eps) {
    JoinRequest request = make_request(points, nullptr, metric, eps);
    ask(request, Output::kTotal);
    const RunResult result = run_join(engine(), request);
    EXPECT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
    return result.total;
  }
};
GPUJOIN_ON_EVERY_ENGINE(RangeJoin);

TEST_P(RangeJoin, points_exactly_eps_apart_match) {
  const Points triangle(2, {0, 0, 3, 4, 6, 8});
  EXPECT_EQ(count_pairs(triangle, Metric::kL2, 5), 3u + 4);
  EXPECT_EQ(count_pairs(triangle, Metric::kL2, below(5)), 3u);
  EXPECT_EQ(count_pairs(triangle, Metric::kL1, 7), 3u + 4);
  EXPECT_EQ(count_pairs(triangle, Metric::kL1, below(7)), 3u);
  EXPECT_EQ(count_pairs(triangle, Metric::kLInf, 4), 3u + 4);
  EXPECT_EQ(count_pairs(triangle, Metric::kLInf, below(4)), 3u);
  expect_exact(2, {0, 0, 3, 4, 6, 8, 3, -4, -5, 0, 0, 5, 5, 0, 5, 1e-300},
               {5, below(5), above(5), 7, 4, 10});
}

TEST_P(RangeJoin, one_ulp_beside_eps_is_told_apart) {
  for (const double eps : {0.1, 1.0, 1e-5}) {
    for (const double start : {0.0, -0.3, 1e6}) {
      std::vector<double> values;
      for (const double x : {start, start + eps, start - eps, start + 2 * eps})
        values.insert(values.end(), {x, below(x), above(x)});
      expect_exact(1, values, {eps, below(eps), above(eps)});
    }
  }
}

TEST_P(RangeJoin, matches_brute_force_on_cell_edges) {
  for (const double eps : {1.0, 0.1, 1.0 / 3}) {
    std::vector<double> line, plane;
    for (int i = -5; i <= 5; ++i) {
      const double x = i * eps;
      line.insert(line.end(), {x, below(x), above(x)});
      for (int j = -2; j <= 2; ++j)
        plane.insert(plane.end(), {x, j % 2 == 0 ? j * eps : above(j * eps)});
    }
    expect_exact(1, line, {eps});
    expect_exact(2, plane, {eps, below(eps)});
  }
}

TEST_P(RangeJoin, duplicates_match_each_other) {
  std::vector<double> values;
  for (int i = 0; i < 40; ++i)
    values.insert(values.end(), {static_cast<double>(i % 4), static_cast<double>(i % 3)});
  expect_exact(2, values, {0, 0.5, 1});
}

TEST_P(RangeJoin, equal_points_all_match) {
  for (const double value : {0.0, 7.25, -1e30}) {
    expect_exact(3, std::vector<double>(3 * 37, value), {0, 1e-9});
    EXPECT_EQ(count_pairs(Points(3, std::vector<double>(3 * 100, value)), Metric::kL2, 0), 10000u);
  }
}

TEST_P(RangeJoin, one_point_matches_itself) { expect_exact(4, {1, 2, 3, 4}, {0, 1}); }

TEST_P(RangeJoin, no_points_have_no_pairs) {
  expect_exact(2, {}, {0, 1});
  // Dims of 0 and null pointers are fine where there are no rows.
  JoinRequest request(Sides::one(Dataset{}, PairSelection::kAll), PointsWithin{Metric::kL2, 1},
                      Output::pairs());
  for (const Output::Kind output :
       {Output::kPairs, Output::kPairsWithDistances, Output::kCountPerRow, Output::kTotal}) {
    ask(request, output);
    const RunResult result = run_join(engine(), request);
    EXPECT_EQ(result.status.code, StatusCode::kEnd);
    EXPECT_EQ(result.total, 0u);
  }
}

TEST_P(RangeJoin, huge_coordinates) {
  const std::vector<double> values = {1e308, -1e308,  kMax,    -kMax,
                                      0,     1,       0.9e308, -0.9e308,
                                      1e308, 8e307,   7.9e307, 7.976931348623157e307,
                                      1e154, 1.35e154};
  for (const Metric metric : kMetrics) {
    for (const double eps : {0.0, 1.0, 1e154, 1.34e154, 1e292, 1e299, 1e308, kMax}) {
      EXPECT_TRUE(every_plan_matches(engine(), Points(1, values), nullptr, metric, eps));
      EXPECT_TRUE(every_plan_matches(engine(), Points(2, values), nullptr, metric, eps));
    }
  }
  expect_exact(2, {3e38, -3e38, 3e38, 3e38, 1e38, 0, 1e19, 1e19}, {0, 1e38, 6e38, 1e39});
}

TEST_P(RangeJoin, neighbors_where_the_extent_overflows) {
  // x - low is infinite from 0.797e308 on: neighbours on either side of that must still meet.
  const double overflow = kMax - 1e308;
  std::vector<double> values = {-1e308, 1e308};
  for (double x : {overflow, overflow * 1.00001, overflow * 0.99999})
    values.insert(values.end(), {x, below(x), above(x)});
  for (const Metric metric : kMetrics)
    for (const double eps : {0.0, 1e292, 1e303, 1e307})
      EXPECT_TRUE(every_plan_matches(engine(), Points(1, values), nullptr, metric, eps));
}

TEST_P(RangeJoin, tiny_coordinates_and_denormals) {
  const std::vector<double> values = {
      0,        kDenormal, -kDenormal, 2 * kDenormal,   1e-310,    1e-308,
      -1e-308,  DBL_MIN,   1e-200,     1.0000001e-200,  1e-162,    1e-161,
      0x1p-538, 0x1p-537,  0x1p-536,   below(0x1p-537), -0x1p-538, 0};
  for (const Metric metric : kMetrics) {
    for (const double eps :
         {0.0, kDenormal, 2 * kDenormal, 1e-310, DBL_MIN, 0x1p-538, 0x1p-537, 1e-162, 1e-160}) {
      EXPECT_TRUE(every_plan_matches(engine(), Points(1, values), nullptr, metric, eps));
      EXPECT_TRUE(every_plan_matches(engine(), Points(2, values), nullptr, metric, eps));
    }
  }
  expect_exact(1, {0, 1e-45, -1e-45, 3e-45, 1e-38, 1.1e-38},
               {0, 1e-45, 1.4012984643248171e-45, 1e-38});
}

TEST_P(RangeJoin, squares_that_underflow_have_distance_zero) {
  const Points points(1, {0, 0x1p-538, 0x1p-537});
  EXPECT_EQ(count_pairs(points, Metric::kL2, 0), 3u + 4)
      << "2^-538 squared rounds to 0, its double does not";
  EXPECT_EQ(count_pairs(points, Metric::kL1, 0), 3u);
}

TEST_P(RangeJoin, negative_zero_equals_zero) {
  const std::vector<double> values = {0.0, -0.0, -0.0, 0.0, 0.0, 0.0, -0.0, -0.0};
  expect_exact(2, values, {0, -0.0, 1});
  EXPECT_EQ(count_pairs(Points(2, values), Metric::kL2, 0), 16u);
}

TEST_P(RangeJoin, nan_and_infinities_match_nothing) {
  const std::vector<double> values = {1,    1,    kNan, 1,    1,     kNan, kNan,  kNan, kInf, 1,
                                      1,    kInf, kInf, kInf, -kInf, 1,    1,     1,    kInf, -kInf,
                                      kInf, kNan, kInf, 1,    2,     2,    -kInf, -kInf};
  expect_exact(2, values, {0, 1, 10});
  for (const Metric metric : kMetrics) {
    EXPECT_TRUE(every_plan_matches(engine(), Points(2, values), nullptr, metric, kMax));
    EXPECT_EQ(count_pairs(Points(2, values), metric, kMax), 9u)
        << "(1, 1), its duplicate and (2, 2)";
  }
}

TEST_P(RangeJoin, data_without_a_finite_row) {
  expect_exact(2, {kNan, 1, 2, kInf, kNan, kNan, -kInf, kInf}, {0, 1});
  expect_exact(1, {kNan}, {1});
}

TEST_P(RangeJoin, every_left_row_has_its_count_even_nan) {
  const Points points(1, {5, kNan, 5, kInf, 7});
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 1);
  ask(request, Output::kCountPerRow);
  const RunResult result = run_join(engine(), request);
  const std::vector<RowCount> expected = {{0, 2}, {1, 0}, {2, 2}, {3, 0}, {4, 1}};
  EXPECT_EQ(result.counts, expected);
}

TEST_P(RangeJoin, eps_zero_and_eps_huge) {
  Random random(51);
  expect_exact(2, make_values(Shape::kLattice, random, 60, 2), {0, 1e300});
  EXPECT_EQ(count_pairs(Points(3, make_values(Shape::kUniform, random, 100, 3)), Metric::kL2, kMax),
            10000u);
}

TEST_P(RangeJoin, sums_are_not_fused_and_go_in_column_order) {
  // Both as they stand (direct sums) and among columns of zeros (screened sums); see
  // distance_test.cpp.
  const std::vector<std::vector<double>> differences = {{0x1p-27, 0x1p-27, 1 + 0x1p-30},
                                                        {1, 0x1p-27, 0x1p-27, 0x1p-27},
                                                        {0x1p-27, 0x1p-27, 0x1p-27, 1}};
  for (std::vector<double> point : differences) {
    for (const std::uint32_t padding : {0u, 3u, 9u, 30u}) {
      point.insert(point.begin(), padding, 0.0);
      const auto dims = static_cast<std::uint32_t>(point.size());
      const double distance =
          definition_of_distance(Metric::kL2, point.data(), std::vector<double>(dims).data(), dims);
      std::vector<double> values = point;
      values.resize(2 * dims);  // the other point is the origin
      for (const double eps : {distance, below(distance), above(distance)})
        EXPECT_TRUE(every_plan_matches(engine(), Points(dims, values), nullptr, Metric::kL2, eps));
    }
  }
}

TEST_P(RangeJoin, floats_are_widened_not_rounded_again) {
  const Points points(1, {0.1, 0.2}, ScalarType::kFloat32);
  const double exact = static_cast<double>(0.2f) - static_cast<double>(0.1f);
  EXPECT_EQ(count_pairs(points, Metric::kL1, exact), 4u);
  EXPECT_EQ(count_pairs(points, Metric::kL1, below(exact)), 2u);
}

TEST_P(RangeJoin, ids_are_any_numbers) {
  constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();
  const std::vector<double> values = {0, 0.5, 1, 1.5, 10, 10, kNan};
  const std::vector<std::vector<std::int64_t>> choices = {
      {6, 5, 4, 3, 2, 1, 0},
      {-1, -2, 100, 7, -50, 3, 9},
      {kHigh, kLow, 0, kLow + 1, kHigh - 1, -1, 1},
      {5, 5, 5, 5, 5, 5, 5},
      {1, 2, 1, 2, 3, 3, 1}};
  for (const std::vector<std::int64_t>& ids : choices) {
    for (const ScalarType scalar : kScalars) {
      const Points points = Points(1, values, scalar).with_ids(ids);
      EXPECT_TRUE(every_plan_matches(engine(), points, nullptr, Metric::kL2, 0.5));
    }
  }
}

TEST_P(RangeJoin, unordered_pairs_have_the_smaller_id_first) {
  const Points points = Points(1, {0, 1, 2}).with_ids({30, -10, 20});
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 1);
  select(request, PairSelection::kUnordered);
  const std::vector<FoundPair> expected = {{-10, 20, 0}, {-10, 30, 0}};
  EXPECT_EQ(run_join(engine(), request).pairs, expected);
  ask(request, Output::kCountPerRow);
  const std::vector<RowCount> counts = {{-10, 2}, {20, 0}, {30, 0}};
  EXPECT_EQ(run_join(engine(), request).counts, counts);
}

TEST_P(RangeJoin, any_number_of_points_and_dimensions) {
  Random random(52);
  for (std::uint32_t dims = 1; dims <= 20; dims += kSanitized && dims > 8 ? 3 : 1)
    expect_exact(dims, make_values(Shape::kLattice, random, 1 + random.index(40), dims),
                 {std::sqrt(2.0 * dims)});
  for (std::uint64_t rows = 1; rows <= 34; rows += kSanitized ? 11 : 3)
    expect_exact(2, make_values(Shape::kUniform, random, rows, 2), {30});
}

TEST_P(RangeJoin, as_many_dimensions_as_there_may_be) {
  Random random(53);
  const std::uint32_t dims = kMaxDimensions;
  std::vector<double> values = make_values(Shape::kUniform, random, 12, dims);
  std::vector<double> zero(dims);
  std::vector<double> eps;
  const std::vector<Metric>& metrics = kMetrics;
  for (const Metric metric : metrics)
    eps.push_back(definition_of_distance(metric, values.data(), values.data() + dims, dims));
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    for (const ScalarType scalar : kScalars) {
      const Points points(dims, values, scalar);
      const Oracle oracle(points, nullptr, metrics[i], eps[i]);
      const JoinRequest request = make_request(points, nullptr, metrics[i], eps[i]);
      EXPECT_TRUE(every_output_matches(engine(), request, oracle));
    }
  }
}

TEST_P(RangeJoin, as_many_indexed_dimensions_as_there_may_be) {
  Random random(54);
  std::size_t turn = 0;
  for (const std::uint32_t dims : {kMaxGridDimensions, kMaxGridDimensions + 9})
    for (const Metric metric : test::kMetrics)  // by cosine distance, too: of directions
      for (const ScalarType scalar : kScalars) {
        const Points points(dims, make_values(Shape::kLattice, random, 40, dims), scalar);
        const Points others(dims, make_values(Shape::kLattice, random, 25, dims), scalar);
        const double eps = distances_of_a_row(points, metric)[9];
        for (const Points* const right : {static_cast<const Points*>(nullptr), &others}) {
          JoinRequest request = make_request(points, right, metric, eps);
          request.knobs.index = IndexMethod::kGrid;
          request.knobs.indexed_dimensions = kMaxGridDimensions;
          request.knobs.access_pattern = std::array{AccessPattern::kFull, AccessPattern::kLinearId,
                                                    AccessPattern::kUnicomp}[turn++ % 3];
          request.knobs.cell_order = CellOrder::kHilbert;
          const RunResult result = run_join(engine(), request);
          EXPECT_TRUE(matches_oracle(result, request, Oracle(points, right, metric, eps)));
          EXPECT_EQ(result.stats.strategy.grid_dims, kMaxGridDimensions);
        }
      }
}

TEST_P(RangeJoin, several_workers_sort_and_walk_what_brute_force_finds) {
  Random random(55);
  constexpr std::uint64_t kRows = 9000;  // beyond what one worker sorts
  for (const Shape shape : {Shape::kUniform, Shape::kClustered, Shape::kExponential}) {
    if (kSanitized && shape != Shape::kClustered) continue;
    const Points points(3, make_values(shape, random, kRows, 3));
    const double eps = shape == Shape::kUniform ? 2 : 0.02;
    const Oracle oracle(points, nullptr, Metric::kL2, eps);
    for (const IndexMethod index : {IndexMethod::kGrid, IndexMethod::kTiles}) {
      for (const std::uint32_t threads : {5u, 16u}) {
        JoinRequest request = make_request(points, nullptr, Metric::kL2, eps);
        request.knobs.index = index;
        request.resources.threads = threads;
        EXPECT_TRUE(matches_oracle(run_join(engine(), request), request, oracle));
        ask(request, Output::kCountPerRow);
        EXPECT_TRUE(matches_oracle(run_join(engine(), request), request, oracle));
      }
    }
  }
}

TEST_P(RangeJoin, more_pairs_than_32_bits_count) {
  if (kSanitized) GTEST_SKIP() << "too long under a sanitizer";
  constexpr std::uint64_t kRows = 70'000;
  const Points points(1, std::vector<double>(kRows, 2.0));
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 1);
  ask(request, Output::kTotal);
  EXPECT_EQ(run_join(engine(), request).total, kRows * kRows);
  select(request, PairSelection::kUnordered);
  EXPECT_EQ(run_join(engine(), request).total, kRows * (kRows - 1) / 2);
  select(request, PairSelection::kAll);
  ask(request, Output::kCountPerRow);
  const RunResult result = run_join(engine(), request);
  EXPECT_EQ(result.total, kRows * kRows);
  for (const RowCount& row : result.counts) ASSERT_EQ(row.count, kRows);
}

TEST_P(RangeJoin, long_cells_and_many_cells_of_a_shuffled_lattice) {
  // Large enough for parallel sorting; the answer follows from the lattice.
  constexpr std::uint64_t kSide = 400;
  std::vector<std::int64_t> ids(kSide * kSide);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
  Random random(54);
  for (std::size_t i = ids.size(); i > 1; --i) std::swap(ids[i - 1], ids[random.index(i)]);
  std::vector<double> values;
  for (const std::int64_t id : ids)
    values.insert(values.end(), {static_cast<double>(id % kSide), static_cast<double>(id / kSide)});
  const Points points = Points(2, values).with_ids(ids);
  for (const std::uint32_t indexed : {0u, 1u, 2u}) {
    JoinRequest request = make_request(points, nullptr, Metric::kL1, 1);
    request.knobs.indexed_dimensions = indexed;
    select(request, PairSelection::kUnordered);
    const RunResult result = run_join(engine(), request);
    ASSERT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
    ASSERT_EQ(result.pairs.size(), 2 * kSide * (kSide - 1));
    for (std::size_t i = 0; i < result.pairs.size(); ++i) {
      const FoundPair& pair = result.pairs[i];
      const std::int64_t step = pair.id2 - pair.id1;
      ASSERT_TRUE(step == kSide || (step == 1 && pair.id2 % kSide != 0))
          << pair.id1 << ", " << pair.id2;
      ASSERT_TRUE(i == 0 || result.pairs[i - 1] < pair)
          << "twice: " << pair.id1 << ", " << pair.id2;
    }
  }
}

}  // namespace
}  // namespace gpujoin::test
