// Outliers: what is taken for one, and that a few rows far from all others cost an index nothing
// but themselves, whichever method runs, on every engine. Counts of candidates and of rechecked
// pairs are compared, not times.

#include "engine/strategy/outliers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "boxes.h"
#include "engine/strategy/sample.h"
#include "engine/strategy/screen_frame.h"
#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

constexpr std::uint64_t kRows = 8000;

std::vector<double> uniform(Random& random, std::uint64_t count, double low, double high) {
  std::vector<double> values(count);
  for (double& x : values) x = random.between(low, high);
  return values;
}

// What is an outlier.

TEST(Outliers, the_range_of_a_column_leaves_out_one_value_in_a_thousand) {
  Random random(401);
  for (const double far : {1e3, 1e9, 3.4e38, kMax}) {
    std::vector<double> values = uniform(random, 512, 0, 1);
    values[17] = far;
    values[400] = -far;
    const Extent range = ordinary_range(values, nullptr);
    EXPECT_FALSE(range.holds(far));
    EXPECT_FALSE(range.holds(-far));
    EXPECT_TRUE(range.holds(0) && range.holds(1) && range.holds(2));
    EXPECT_LT(range.high - range.low, 10);
  }
}

TEST(Outliers, the_range_of_a_column_holds_every_cluster_of_five_percent) {
  Random random(402);
  for (const double share : {0.05, 0.2, 0.5}) {
    std::vector<double> values = uniform(random, 512, 0, 1);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (static_cast<double>(i) < share * 512) values[i * 89 % 512] += 1e9;
    const Extent range = ordinary_range(values, nullptr);
    EXPECT_TRUE(range.holds(0) && range.holds(1e9 + 1)) << share;
  }
}

TEST(Outliers, the_range_of_a_column_holds_the_tail_of_exponential_data) {
  Random random(403);
  std::vector<double> values(512);
  for (double& x : values) x = random.exponential();
  const Extent range = ordinary_range(values, nullptr);
  EXPECT_TRUE(range.holds(0) && range.holds(std::log(1e6)));
}

TEST(Outliers, the_range_of_a_column_is_that_of_both_sides) {
  Random random(404);
  const std::vector<double> left = uniform(random, 512, 0, 1), right = uniform(random, 40, 50, 51);
  const Extent range = ordinary_range(left, &right);
  EXPECT_TRUE(range.holds(0) && range.holds(51));
  EXPECT_FALSE(range.holds(1e3));
}

TEST(Outliers, few_values_and_special_ones_have_a_range_too) {
  const std::vector<double> none, few = {1, 2, 1e9}, same(100, 5), not_finite(50, kNan);
  EXPECT_TRUE(ordinary_range(none, nullptr).holds(kMax));
  EXPECT_TRUE(ordinary_range(not_finite, nullptr).holds(-kMax));
  EXPECT_TRUE(ordinary_range(few, nullptr).holds(1e9));
  EXPECT_TRUE(ordinary_range(few, nullptr).holds(-1e300));
  EXPECT_TRUE(ordinary_range(same, nullptr).holds(5));
  std::vector<double> huge(100, kMax);
  std::fill(huge.begin() + 50, huge.end(), -kMax);
  EXPECT_TRUE(ordinary_range(huge, nullptr).holds(kMax));
  EXPECT_TRUE(ordinary_range(huge, nullptr).holds(-kMax));
  std::vector<double> halves = same;  // half of the values are one
  for (std::size_t i = 0; i < 50; ++i) halves[i] = static_cast<double>(i);
  EXPECT_TRUE(ordinary_range(halves, nullptr).holds(0) &&
              ordinary_range(halves, nullptr).holds(49));
}

std::vector<SampledRow> all_rows(const Dataset& data) {
  std::vector<SampledRow> rows;
  for (std::uint64_t row = 0; row < data.rows; ++row) rows.push_back({&data, row});
  return rows;
}

TEST(Outliers, ordinary_rows_are_finite_and_not_far_away) {
  Random random(405);
  for (const ScalarType scalar : {ScalarType::kFloat32, ScalarType::kFloat64}) {
    std::vector<double> values = uniform(random, 500 * 3, -1, 1);
    values[3 * 7 + 1] = 3.4e38;
    values[3 * 90] = -1e6;
    values[3 * 300 + 2] = kNan;
    values[3 * 301] = kInf;
    const Points points(3, values, scalar);
    const Dataset data = points.view();
    const std::vector<SampledRow> rows = ordinary_rows(all_rows(data), 3);
    EXPECT_EQ(rows.size(), 496u);
    for (const SampledRow row : rows) EXPECT_TRUE(row.row != 7 && row.row != 90) << row.row;
  }
}

TEST(Outliers, rows_of_sparse_columns_are_ordinary) {
  // Each column is 0 in nearly all rows, and each row has a column that is not.
  Random random(406);
  std::vector<double> values(500 * 400);
  for (std::size_t row = 0; row < 500; ++row) values[row * 400 + random.index(400)] = random.unit();
  const Points points(400, values);
  const Dataset data = points.view();
  EXPECT_EQ(ordinary_rows(all_rows(data), 400).size(), 500u);
}

TEST(Outliers, rows_with_a_value_for_none_are_no_ordinary_ones_of_a_screen) {
  Random random(409);
  std::vector<double> values = uniform(random, 4000 * 8, 0, 1);
  for (std::size_t row = 0; row < 4000; row += 50) values[row * 8 + row % 8] = 1e20;
  const Points points(8, values);
  const ScreenFrame frame =
      choose_screen_frame(make_request(points, nullptr, Metric::kL2, 1), true);
  EXPECT_GT(frame.scale, 1);
  for (const double center : frame.center) EXPECT_NEAR(center, 0.5, 0.1);
}

TEST(Outliers, few_rows_and_equal_ones_are_ordinary) {
  const Points few(1, {1, 2, 1e9}), equal(1, std::vector<double>(300, 4.0));
  const Dataset few_data = few.view(), equal_data = equal.view();
  EXPECT_EQ(ordinary_rows(all_rows(few_data), 1).size(), 3u);
  EXPECT_EQ(ordinary_rows(all_rows(equal_data), 1).size(), 300u);
  EXPECT_TRUE(ordinary_rows({}, 5).empty());
}

TEST(Outliers, columns_far_from_zero_keep_their_variance) {
  // Seconds since 1970, spread over some seconds: squares of the values themselves show no
  // variance.
  Random random(407);
  constexpr std::uint32_t kDims = 12;
  std::vector<double> values(2000 * kDims);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 1.7e9 + random.between(0, static_cast<double>(1 + i % kDims));
  const Points points(kDims, values);
  const ScreenFrame frame =
      choose_screen_frame(make_request(points, nullptr, Metric::kL2, 1), true);
  for (std::uint32_t d = 0; d < kDims; ++d) {
    EXPECT_EQ(frame.order[d], kDims - 1 - d);
    EXPECT_NEAR(frame.center[d], 1.7e9 + (1 + d) / 2.0, 1);
  }
}

TEST(Outliers, statistics_of_no_rows_and_of_huge_ones_are_numbers) {
  EXPECT_EQ(column_statistics({}, 2).mean, std::vector<double>(2));
  const Points points(2, {kMax, 1, -kMax, 2, kMax, 3, kMax, 4});
  const Dataset data = points.view();
  const ColumnStatistics columns = column_statistics(all_rows(data), 2);
  EXPECT_TRUE(std::isfinite(columns.mean[0]));
  EXPECT_EQ(columns.variance[0], DBL_MAX);
  EXPECT_EQ(columns.mean[1], 2.5);
  EXPECT_EQ(columns.variance[1], 5);
  EXPECT_EQ(by_variance(columns), (std::vector<std::uint32_t>{0, 1}));
}

// What outliers cost.

/// Data with some rows put far away, which match nothing but themselves. Some of those rows are
/// among the sampled ones.
struct FarRows {
  std::string name;
  std::vector<double> values;
  std::uint64_t outliers = 0;
};

std::vector<FarRows> with_far_rows(const std::vector<double>& values, std::uint32_t dims) {
  std::vector<FarRows> sets;
  const std::uint64_t row = sample_rows(values.size() / dims)[99];
  for (const double far : {1e6, 1e7, 1e9, 1e20, 3.4e38}) {
    for (const bool all : {false, true}) {
      FarRows set{std::to_string(far) + (all ? " in all columns" : " in one column"), values, 1};
      for (std::uint32_t d = 0; d < (all ? dims : 1); ++d) set.values[row * dims + d] = far;
      sets.push_back(set);
    }
  }
  FarRows many{"one row in a thousand", values, values.size() / dims / 1000};
  Random random(408);
  for (std::uint64_t i = 0; i < many.outliers; ++i) {
    const std::uint64_t rows = values.size() / dims;
    const std::uint64_t at = i < 3 ? sample_rows(rows)[31 * i] : random.index(rows);
    const double magnitude = std::pow(10, random.between(6, 38));
    for (std::uint32_t d = 0; d < dims; ++d)
      if (d == i % dims || random.index(2) == 0)
        many.values[at * dims + d] = magnitude * random.between(0.5, 1) * (i % 2 == 0 ? 1 : -1);
  }
  sets.push_back(many);
  return sets;
}

/// A self-join whose points are set later.
JoinRequest request_within(double eps) {
  static const Points none(1, {});
  return make_request(none, nullptr, Metric::kL2, eps);
}

class OutlierJoins : public EngineTest {
 protected:
  /// Joins with and without outliers, and compares work and totals.
  void expect_no_more_work(JoinRequest request, const std::vector<double>& values,
                           std::uint32_t dims, ScalarType scalar) {
    const Points clean(dims, values, scalar);
    set_sides(request, clean.view(), clean.view());
    ask(request, Output::kTotal);
    select(request, PairSelection::kDistinct);
    const RunResult before = run_join(engine(), request);
    ASSERT_EQ(before.status.code, StatusCode::kEnd) << before.status.message;
    // Candidates are as many under a sanitizer, which takes minutes for all sets: one in one
    // column, one in all, and many.
    const std::vector<FarRows> sets = with_far_rows(values, dims);
    for (std::size_t i = 0; i < sets.size(); i += kSanitized ? 5 : 1) {
      const FarRows& set = sets[i];
      const Points points(dims, set.values, scalar);
      set_sides(request, points.view(), points.view());
      const RunResult after = run_join(engine(), request);
      ASSERT_EQ(after.status.code, StatusCode::kEnd) << after.status.message;
      const std::string where = set.name + ", " + describe(request);
      EXPECT_EQ(after.stats.strategy.index, before.stats.strategy.index) << where;
      EXPECT_LE(after.total, before.total) << where;
      EXPECT_GE(static_cast<double>(after.total), 0.99 * static_cast<double>(before.total))
          << where;
      // Outliers may meet each other; and of a handful of uncertain pairs another scale has others.
      constexpr double kFewPairs = 16;
      const auto own = static_cast<double>(set.outliers * set.outliers);
      EXPECT_LE(static_cast<double>(after.stats.candidates),
                1.1 * static_cast<double>(before.stats.candidates) + own)
          << where;
      EXPECT_LE(static_cast<double>(after.stats.rechecked),
                1.1 * static_cast<double>(before.stats.rechecked) + own + kFewPairs)
          << where;
    }
  }

  void expect_no_more_work(IndexMethod method, std::uint32_t dims, double eps) {
    Random random(410 + dims);
    const std::vector<double> values = uniform(random, kRows * dims, 0, 1);
    JoinRequest request = request_within(eps);
    request.knobs.index = method;
    for (const ScalarType scalar : {ScalarType::kFloat32, ScalarType::kFloat64})
      expect_no_more_work(request, values, dims, scalar);
  }
};
GPUJOIN_ON_EVERY_ENGINE(OutlierJoins);

TEST_P(OutlierJoins, cost_a_grid_nothing) {
  expect_no_more_work(IndexMethod::kGrid, 1, 0.001);
  expect_no_more_work(IndexMethod::kGrid, 2, 0.02);
  expect_no_more_work(IndexMethod::kGrid, 3, 0.05);
  expect_no_more_work(IndexMethod::kGrid, 6, 0.2);
}

TEST_P(OutlierJoins, cost_a_grid_over_some_columns_nothing) {
  expect_no_more_work(IndexMethod::kGrid, 16, 0.5);
}

TEST_P(OutlierJoins, cost_reference_points_nothing) {
  expect_no_more_work(IndexMethod::kReferencePoints, 6, 0.1);
  expect_no_more_work(IndexMethod::kReferencePoints, 20, 0.5);
}

TEST_P(OutlierJoins, cost_tiles_nothing) {
  expect_no_more_work(IndexMethod::kTiles, 3, 0.05);
  expect_no_more_work(IndexMethod::kTiles, 16, 0.6);
  expect_no_more_work(IndexMethod::kTiles, 32, 1.4);
}

TEST_P(OutlierJoins, do_not_change_the_choice_of_a_method) {
  expect_no_more_work(IndexMethod::kAuto, 2, 0.02);
  expect_no_more_work(IndexMethod::kAuto, 16, 0.6);
}

TEST_P(OutlierJoins, of_dates_at_the_end_of_time_cost_nothing) {
  // Seconds since 1970; some rows have no date, or one that stands for none.
  Random random(420);
  for (const IndexMethod method : {IndexMethod::kGrid, IndexMethod::kTiles}) {
    const std::uint32_t dims = method == IndexMethod::kGrid ? 2 : 16;
    const std::vector<double> clean = uniform(random, kRows * dims, 1.69e9, 1.71e9);
    JoinRequest request = request_within(dims == 2 ? 3e5 : 1.2e7);
    request.knobs.index = method;
    ask(request, Output::kTotal);
    for (const ScalarType scalar : {ScalarType::kFloat32, ScalarType::kFloat64}) {
      RunResult before;
      for (const double far : {1.7e9, 0.0, 253402214400.0, -62135596800.0}) {
        std::vector<double> values = clean;
        values[sample_rows(kRows)[200] * dims] = far;
        const Points points(dims, values, scalar);
        set_sides(request, points.view(), points.view());
        const RunResult result = run_join(engine(), request);
        if (far == 1.7e9) before = result;
        EXPECT_LE(static_cast<double>(result.stats.candidates),
                  1.1 * static_cast<double>(before.stats.candidates))
            << far << ", " << describe(request);
        EXPECT_LE(static_cast<double>(result.stats.rechecked),
                  1.1 * static_cast<double>(before.stats.rechecked) + 1)
            << far << ", " << describe(request);
      }
    }
  }
}

TEST_P(OutlierJoins, a_cluster_far_away_is_indexed_like_the_rest) {
  // On its own each of two clusters has as many candidates as both have together.
  Random random(421);
  for (const double share : {0.05, 0.5}) {
    const auto rows = static_cast<std::uint64_t>(share * kRows);
    const std::vector<double> near = uniform(random, (kRows - rows) * 2, 0, 1);
    const std::vector<double> far = uniform(random, rows * 2, 1000, 1001);
    JoinRequest request = request_within(0.02);
    request.knobs.index = IndexMethod::kGrid;
    ask(request, Output::kTotal);
    std::vector<double> both = near;  // rows of the clusters alternate
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t place = 2 * (i * (kRows - rows) / rows);
      std::swap_ranges(both.begin() + static_cast<std::ptrdiff_t>(place),
                       both.begin() + static_cast<std::ptrdiff_t>(place + 2), both.end() - 2);
      both.insert(both.end(), far.begin() + static_cast<std::ptrdiff_t>(2 * i),
                  far.begin() + static_cast<std::ptrdiff_t>(2 * i + 2));
    }
    double apart = 0;
    for (const std::vector<double>& part : {near, far}) {
      const Points points(2, part);
      set_sides(request, points.view(), points.view());
      apart += static_cast<double>(run_join(engine(), request).stats.candidates);
    }
    const Points points(2, both);
    set_sides(request, points.view(), points.view());
    const RunResult together = run_join(engine(), request);
    EXPECT_LE(static_cast<double>(together.stats.candidates), 1.3 * apart) << share;
  }
}

TEST_P(OutlierJoins, cost_the_best_pairs_nothing) {
  Random random(422);
  const std::vector<double> values = uniform(random, kRows * 2, 0, 1);
  const std::vector<double> scores = uniform(random, kRows, 0, 1);
  for (const ScoreFunction function : {ScoreFunction::kSum, ScoreFunction::kDistance}) {
    JoinRequest request = request_within(0.02);
    request.knobs.topk_method = TopkMethod::kHeap;  // compares all pairs
    request = request.asking(
        Output::top_pairs({{function, function == ScoreFunction::kDistance, {1, 1}}, 20}));
    const Points clean = Points(2, values).with_scores(scores);
    set_sides(request, clean.view(), clean.view());
    const RunResult before = run_join(engine(), request);
    for (const FarRows& set : with_far_rows(values, 2)) {
      const Points points = Points(2, set.values).with_scores(scores);
      set_sides(request, points.view(), points.view());
      const RunResult after = run_join(engine(), request);
      ASSERT_EQ(after.status.code, StatusCode::kEnd) << after.status.message;
      EXPECT_EQ(after.pairs.size(), 20u);
      EXPECT_LE(static_cast<double>(after.stats.candidates),
                1.1 * static_cast<double>(before.stats.candidates) +
                    static_cast<double>(set.outliers * set.outliers))
          << set.name << ", " << describe(request);
    }
  }
}

TEST_P(OutlierJoins, cost_boxes_nothing) {
  Random random(423);
  std::vector<double> clean = uniform(random, kRows * 4, 0, 1);
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t d = 0; d < 2; ++d)
      clean[4 * i + 2 + d] = clean[4 * i + d] + random.unit() / 50;
  for (const BoxMethod method :
       {BoxMethod::kLayeredGrid, BoxMethod::kSortSweep, BoxMethod::kAuto}) {
    const Points points(4, clean);
    JoinRequest request = make_box_request(points, nullptr, Metric::kL2, 0);
    ask(request, Output::kTotal);
    request.knobs.box_method = method;
    const RunResult before = run_join(engine(), request);
    for (const double far : {1e6, 1e9, 1e20, 3.4e38}) {
      for (const std::uint64_t count : {std::uint64_t{1}, kRows / 1000}) {
        std::vector<double> values = clean;
        for (std::uint64_t i = 0; i < count; ++i) {
          const std::uint64_t row = i < 3 ? sample_rows(kRows)[50 + 41 * i] : random.index(kRows);
          for (std::size_t d = 0; d < 4; ++d)
            values[4 * row + d] = (i % 2 == 0 ? far : -far) * (1 + static_cast<double>(i) / 16);
          if (i % 2 == 1) continue;
          for (std::size_t d = 2; d < 4; ++d) values[4 * row + d] *= 1.01;
        }
        const Points moved(4, values);
        set_sides(request, moved.view(), moved.view());
        const RunResult after = run_join(engine(), request);
        ASSERT_EQ(after.status.code, StatusCode::kEnd) << after.status.message;
        EXPECT_EQ(after.stats.box_method, before.stats.box_method);
        EXPECT_LE(
            static_cast<double>(after.stats.candidates),
            1.1 * static_cast<double>(before.stats.candidates) + static_cast<double>(count * count))
            << far << ", " << count << ", " << describe(request);
      }
    }
  }
}

TEST_P(OutlierJoins, are_exact) {
  Random random(424);
  for (const std::uint32_t dims : {1u, 2u, 6u, 17u}) {
    const double eps = dims < 6 ? 0.05 : 0.2 * std::sqrt(dims);
    std::vector<FarRows> sets = with_far_rows(uniform(random, 400 * dims, 0, 1), dims);
    // Outliers that are near each other, on either side of what anything is cut to.
    FarRows twins{"twins", sets.back().values, 80};
    for (std::uint64_t i = 0; i < twins.outliers; ++i) {
      const double far = std::pow(2, static_cast<double>(i / 4)) * (i % 8 < 4 ? 1 : -1);
      for (std::uint32_t d = 0; d < dims; ++d)
        twins.values[(5 * i) * dims + d] = i % 4 == 3 && d > 0 ? 0.5 : far + random.between(0, eps);
    }
    sets.push_back(twins);
    for (std::size_t i = dims % 3; i < sets.size(); i += i + 3 < sets.size() - 1 ? 3 : 1) {
      const ScalarType scalar = i % 2 == 0 ? ScalarType::kFloat64 : ScalarType::kFloat32;
      const Points points(dims, sets[i].values, scalar);
      for (const Metric metric : {Metric::kL2, Metric::kLInf}) {
        const Oracle oracle(points, nullptr, metric, eps);
        for (const IndexMethod method : {IndexMethod::kGrid, IndexMethod::kReferencePoints,
                                         IndexMethod::kTiles, IndexMethod::kNone}) {
          JoinRequest request = make_request(points, nullptr, metric, eps);
          request.knobs.index = method;
          ask(request, i % 3 == 0 ? Output::kPairsWithDistances : Output::kPairs);
          ASSERT_TRUE(matches_oracle(run_join(engine(), request), request, oracle)) << sets[i].name;
        }
      }
    }
  }
}

TEST_P(OutlierJoins, of_two_sides_are_exact) {
  Random random(425);
  for (const std::uint32_t dims : {2u, 9u}) {
    const double eps = dims == 2 ? 0.05 : 0.5;
    std::vector<double> left = uniform(random, 900 * dims, 0, 1);
    std::vector<double> right = uniform(random, 60 * dims, 0, 1);
    for (std::uint32_t d = 0; d < dims; ++d) {
      left[5 * dims + d] = left[600 * dims + d] = right[7 * dims + d] = 1e9;
      left[700 * dims + d] = right[40 * dims + d] = -3e38;
    }
    const Points a(dims, left), b(dims, right);
    const Oracle oracle(a, &b, Metric::kL2, eps), mirror(b, &a, Metric::kL2, eps);
    for (const IndexMethod method : {IndexMethod::kGrid, IndexMethod::kReferencePoints,
                                     IndexMethod::kTiles, IndexMethod::kAuto}) {
      JoinRequest request = make_request(a, &b, Metric::kL2, eps);
      request.knobs.index = method;
      EXPECT_TRUE(every_output_matches(engine(), request, oracle));
      request = make_request(b, &a, Metric::kL2, eps);
      request.knobs.index = method;
      EXPECT_TRUE(every_output_matches(engine(), request, mirror));
    }
  }
}

}  // namespace
}  // namespace gpujoin::test
