// Joins whose pairs have keys near each other, too: every output and plan of the CPU engine against
// brute force over points that carry their keys as further coordinates.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine_harness.h"
#include "points.h"
#include "small_parts.h"
#include "stored_points.h"

namespace gpujoin::test {
namespace {

/// Points, their keys, and both in rows of one.
struct KeyedPoints {
  Points points, whole;
  std::vector<double> keys;  ///< [rows][count]
  std::uint32_t count;

  Dataset view() const {
    Dataset data = points.view();
    data.keys = keys.data();
    data.key_columns = count;
    return data;
  }
};

constexpr double kLongest = 100;     ///< of most intervals
constexpr double kAllTime = 0x1p53;  ///< before and after all others
constexpr double kEndless = 0x1p54;  ///< of those without an end

/// The high end of an interval, which may change its low one; of `longest` the rare ones are.
double make_end(Random& random, double* low, double longest) {
  if (random.index(10) == 0) return *low - 5;
  if (longest > kLongest && random.index(25) == 0) {
    if (random.index(2) == 0) *low = -kAllTime;
    return random.index(2) == 0 ? kAllTime : std::fmax(*low, 0) + 5000;
  }
  return *low + std::floor(random.between(0, kLongest));
}

/// Whole numbers below `groups` for reaches of 0, times of a day for others, intervals of some
/// length, some of which begin after their end, and some, where the reach says so, are very long;
/// some are NaN.
KeyedPoints make_points(Random& random, Shape shape, std::uint64_t rows, std::uint32_t dims,
                        const PairKeys& keys, ScalarType scalar) {
  const std::vector<double> values = make_values(shape, random, rows, dims);
  std::vector<double> columns(keys.count * rows), all;
  for (std::uint32_t k = 0; k < keys.count; ++k)
    for (std::uint64_t row = 0; row < rows; ++row) {
      double& key = columns[row * keys.count + k];
      if (random.index(20) == 0)
        key = kNan;
      else if (keys.is_high_end(k))
        key = make_end(random, &columns[row * keys.count + k - 1], keys.reach[k]);
      else if (keys.reach[k] == 0)
        key = static_cast<double>(random.index(static_cast<std::uint64_t>(keys.most[k]) + 1));
      else
        key = std::floor(random.between(0, 1440));
    }
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint32_t d = 0; d < dims; ++d) {
      const double x = values[row * dims + d];
      all.push_back(scalar == ScalarType::kFloat32 ? static_cast<float>(x) : x);
    }
    for (std::uint32_t k = 0; k < keys.count; ++k) all.push_back(columns[row * keys.count + k]);
  }
  return {Points(dims, values, scalar), Points(dims + keys.count, all), columns, keys.count};
}

PairKeys make_keys(Random& random) {
  PairKeys keys;
  keys.count = 1 + static_cast<std::uint32_t>(random.index(3));
  for (std::uint32_t k = 0; k < keys.count; ++k) {
    const bool equal = random.index(2) == 0;
    keys.reach[k] = equal ? 0 : random.pick<double>({1, 10, 500, 1e6});
    keys.most[k] = equal ? random.pick<double>({0, 1, 6, 1e7}) : 0;
    if (k + 1 == keys.count || random.index(2) == 0) continue;
    keys.intervals |= 1u << k;
    keys.reach[k] = keys.reach[k + 1] = random.index(2) == 0 ? kLongest : kEndless;
    ++k;
  }
  return keys;
}

Oracle oracle_of(const KeyedPoints& left, const KeyedPoints* right, Metric metric, double eps,
                 const PairKeys& keys) {
  return Oracle(left.whole, right == nullptr ? nullptr : &right->whole, eps,
                [=](const double* a, const double* b, std::uint32_t numbers) {
                  const std::uint32_t dims = numbers - keys.count;
                  for (std::uint32_t k = 0; k < keys.count; ++k) {
                    const double *const x = a + dims + k, *const y = b + dims + k;
                    if ((keys.intervals >> k & 1) != 0) {
                      const bool none = std::isnan(x[0] + x[1] + y[0] + y[1]);
                      if (none || x[0] > y[1] || y[0] > x[1]) return kNan;
                      ++k;
                    } else if (!(std::abs(x[0] - y[0]) <= keys.reach[k])) {
                      return kNan;
                    }
                  }
                  return definition_of_distance(metric, a, b, dims);
                });
}

/// A random join by keys, of one or of two sides, and its answer.
struct KeyedJoin {
  KeyedJoin(Random& random, const PairKeys& by, std::uint64_t left_rows, std::uint64_t right_rows)
      : keys(by),
        metric(random.pick(kMetrics)),
        eps(metric == Metric::kCosine ? random.pick<double>({0.01, 0.3})
                                      : random.pick<double>({0, 1, 7, 40})),
        dims(random.pick<std::uint32_t>({1, 2, 2, 3, 5, 12})),
        scalar(random.pick<ScalarType>({ScalarType::kFloat32, ScalarType::kFloat64})),
        shape(random.pick(kShapes)),
        self_join(random.index(2) == 0),
        left(make_points(random, shape, left_rows, dims, keys, scalar)),
        right(make_points(random, shape, right_rows, dims, keys, scalar)),
        oracle(oracle_of(left, self_join ? nullptr : &right, metric, eps, keys)),
        request(self_join ? Sides::one(left.view(), PairSelection::kAll)
                          : Sides::two(left.view(), right.view()),
                PointsWithin{metric, eps}, Output::pairs()) {
    request.keys = keys;
  }
  KeyedJoin(const KeyedJoin&) = delete;

  testing::AssertionResult matches_on(const EngineTable& engine) const {
    const testing::AssertionResult same = every_output_matches(engine, request, oracle);
    if (same) return same;
    return testing::AssertionFailure()
           << same.message() << ", keys " << keys.count << ", reaches " << keys.reach[0] << " "
           << keys.reach[1] << " " << keys.reach[2];
  }

  PairKeys keys;
  Metric metric;
  double eps;
  std::uint32_t dims;
  ScalarType scalar;
  Shape shape;
  bool self_join;
  KeyedPoints left, right;
  Oracle oracle;
  JoinRequest request;
};

/// Of `many` dimensions a grid has all that there may be, which takes its time.
std::vector<Knobs> plans(bool many) {
  std::vector<Knobs> made(8);
  for (std::size_t i = 1; i < made.size(); ++i) made[i].batch_pairs = 100;
  made[1].index = IndexMethod::kNone;
  made[2].index = IndexMethod::kGrid;
  made[2].indexed_dimensions = 1;
  made[3].index = IndexMethod::kGrid;
  made[3].indexed_dimensions = many ? kMaxGridDimensions : 5;
  made[3].cell_order = CellOrder::kHilbert;
  made[4].index = IndexMethod::kGrid;
  made[4].indexed_dimensions = 2;
  made[4].sort_unindexed = Switch::kOff;
  made[4].access_pattern = AccessPattern::kFull;
  made[5].index = IndexMethod::kReferencePoints;
  made[6].index = IndexMethod::kTiles;  // which know no keys
  made[6].short_circuit = Switch::kOn;
  made[7].reorder_dimensions = Switch::kOff;
  made[7].access_pattern = AccessPattern::kUnicomp;
  return made;
}

TEST(PairKeys, joins_with_keys_match_brute_force) {
  Random random(20261123);
  for (int round = 0; round < (kSanitized ? 16 : 80); ++round) {
    KeyedJoin join(random, make_keys(random), 150, 170);
    join.request.resources.threads = 2;
    for (const Knobs& knobs : plans(round % 8 == 0)) {
      join.request.knobs = knobs;
      ASSERT_TRUE(join.matches_on(*cpu_engine())) << "round " << round;
    }
  }
}

TEST(PairKeys, joins_in_parts_match_brute_force) {
  Random random(20261124);
  for (int round = 0; round < (kSanitized ? 10 : 30); ++round) {
    KeyedJoin join(random, make_keys(random), 350, 270);
    for (const std::uint64_t fitting : {SmallParts::kAll, std::uint64_t{130}}) {
      SmallParts::rows_that_fit = fitting;
      ASSERT_TRUE(join.matches_on(engine_of_parts())) << "round " << round;
    }
    SmallParts::rows_that_fit = SmallParts::kAll;
    MemoryFile file;
    StoredPoints left_file(join.left.view(), 6), right_file(join.right.view(), 5);
    set_sides(join.request, left_file.in_file(file), right_file.in_file(file));
    join.request.resources.scratch = file.functions();
    join.request.resources.memory_limit = 1 << 21;
    ASSERT_TRUE(join.matches_on(*cpu_engine())) << "round " << round;
    ASSERT_TRUE(join.matches_on(engine_of_parts())) << "round " << round;
  }
}

TEST(PairKeys, joins_by_classes_of_length_match_brute_force) {
  Random random(20261125);
  for (int round = 0; round < (kSanitized ? 6 : 60); ++round) {
    PairKeys keys = make_keys(random);
    while (keys.intervals == 0) keys = make_keys(random);
    const KeyedJoin join(random, keys, 250, 210);
    SmallParts::lengths = random.pick<std::vector<double>>({{128}, {0.5}, {32, 1024}, {-3, 1e9}});
    for (const std::uint64_t rows : {std::uint64_t{1000}, std::uint64_t{90}}) {
      SmallParts::rows = rows;
      EXPECT_TRUE(join.matches_on(engine_of_parts())) << "round " << round;
    }
    SmallParts::rows = 100;
    SmallParts::lengths.clear();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(PairKeys, parts_are_cut_along_the_key_that_separates_best) {
  Random random(9);
  const PairKeys keys{1, {0}, {999}};
  const KeyedPoints points =
      make_points(random, Shape::kUniform, 4000, 2, keys, ScalarType::kFloat64);
  JoinRequest request(Sides::one(points.view(), PairSelection::kAll), {Metric::kL2, 1000},
                      Output::total());
  request.keys = keys;
  EXPECT_EQ(choose_cut(request, choose_strategy(request), kCoreWalkCosts).column.low, 2u);
  const RunResult run = run_join(engine_of_parts(), request);
  EXPECT_EQ(run.status.code, StatusCode::kEnd);
  // Each part with itself, and with the next one where they share a key.
  EXPECT_LE(run.stats.parts, 2 * 4000 / SmallParts::rows * 2);
}

TEST(PairKeys, an_equality_of_many_groups_is_the_index) {
  Random random(7);
  PairKeys keys{1, {0}, {999}};
  const KeyedPoints points =
      make_points(random, Shape::kUniform, 20000, 2, keys, ScalarType::kFloat64);
  JoinRequest request(Sides::one(points.view(), PairSelection::kAll), {Metric::kL2, 20},
                      Output::total());
  request.keys = keys;
  const RunResult run = run_join(*cpu_engine(), request);
  ASSERT_EQ(run.status.code, StatusCode::kEnd);
  const Strategy& strategy = run.stats.strategy;
  bool indexed = strategy.sort_column == 2;
  for (std::uint32_t d = 0; d < strategy.grid_dims; ++d)
    indexed = indexed || strategy.grid_columns[d] == 2;
  EXPECT_TRUE(indexed);
  EXPECT_LT(run.stats.candidates, 20000u * 20 * 2);
}

TEST(PairKeys, short_intervals_are_the_index) {
  Random random(11);
  PairKeys keys{2, {kLongest, kLongest}, {}, 1};
  const KeyedPoints points =
      make_points(random, Shape::kUniform, 20000, 2, keys, ScalarType::kFloat64);
  JoinRequest request(Sides::one(points.view(), PairSelection::kAll), {Metric::kL2, 1000},
                      Output::total());
  request.keys = keys;
  EXPECT_EQ(choose_cut(request, choose_strategy(request), kCoreWalkCosts).column.low, 2u);
  const RunResult run = run_join(*cpu_engine(), request);
  ASSERT_EQ(run.status.code, StatusCode::kEnd);
  EXPECT_LT(run.stats.candidates, std::uint64_t{20000} * 20000 / 3);
}

/// All points are within the radius: intervals alone tell pairs apart.
TEST(PairKeys, a_few_long_intervals_leave_the_index_to_the_others) {
  constexpr std::uint64_t kRows = 20000;
  for (const std::uint64_t endless : {1, 100}) {
    Random random(12);
    PairKeys keys{2, {kLongest, kLongest}, {}, 1};
    KeyedPoints left = make_points(random, Shape::kUniform, kRows, 2, keys, ScalarType::kFloat64);
    const KeyedPoints right =
        make_points(random, Shape::kUniform, kRows, 2, keys, ScalarType::kFloat64);
    for (std::uint64_t row = 0; row < endless; ++row) {
      left.keys[200 * 2 * row] = -kAllTime;
      left.keys[200 * 2 * row + 1] = kAllTime;
    }
    keys.reach[0] = keys.reach[1] = kEndless;
    for (const bool self_join : {true, false}) {
      JoinRequest request(self_join ? Sides::one(left.view(), PairSelection::kAll)
                                    : Sides::two(left.view(), right.view()),
                          {Metric::kL2, 1000}, Output::total());
      request.keys = keys;
      const LengthClasses classes = choose_length_classes(request, kCoreWalkCosts);
      EXPECT_EQ(classes.bounds.size(), 1u);
      const RunResult by_classes = run_join(*cpu_engine(), request);
      ASSERT_EQ(by_classes.status.code, StatusCode::kEnd);
      // A self-join has the classes with themselves, and with each other once.
      EXPECT_EQ(by_classes.stats.parts, self_join ? 3u : 2u);
      EXPECT_LT(by_classes.stats.candidates, kRows * kRows / 3);
      request.knobs.index = IndexMethod::kNone;
      const RunResult by_all = run_join(*cpu_engine(), request);
      EXPECT_EQ(by_all.stats.parts, 0u);
      EXPECT_EQ(by_classes.stats.pairs, by_all.stats.pairs);
    }
  }
}

TEST(PairKeys, intervals_of_similar_lengths_are_one_class) {
  Random random(13);
  PairKeys keys{2, {kLongest, kLongest}, {}, 1};
  const KeyedPoints points =
      make_points(random, Shape::kUniform, 20000, 2, keys, ScalarType::kFloat64);
  JoinRequest request(Sides::one(points.view(), PairSelection::kAll), {Metric::kL2, 1000},
                      Output::total());
  request.keys = keys;
  EXPECT_TRUE(choose_length_classes(request, kCoreWalkCosts).bounds.empty());
}

TEST(PairKeys, requests_that_no_engine_serves_are_refused) {
  Random random(8);
  PairKeys keys{1, {0}, {3}};
  const KeyedPoints points =
      make_points(random, Shape::kUniform, 10, 2, keys, ScalarType::kFloat64);
  JoinRequest request(Sides::one(points.view(), PairSelection::kAll), {Metric::kL2, 1},
                      Output::nearest(3));
  request.keys = keys;
  EXPECT_EQ(check_request(request).code, StatusCode::kInvalidArgument);
  request = request.asking(Output::total());
  EXPECT_TRUE(check_request(request).ok());
  request.keys.intervals = 1;
  EXPECT_EQ(check_request(request).code, StatusCode::kInvalidArgument) << "an interval of one end";
  request.keys.intervals = 0;
  request.keys.reach[0] = kNan;
  EXPECT_EQ(check_request(request).code, StatusCode::kInvalidArgument);
  request.keys.count = 0;
  EXPECT_EQ(check_request(request).code, StatusCode::kInvalidArgument) << "keys without a test";
}

}  // namespace
}  // namespace gpujoin::test
