// Output::kSums: the sums over each left row's pairs, by every engine and method, against a loop
// over all pairs.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "core/pair_value.h"
#include "engine_harness.h"
#include "points.h"
#include "small_parts.h"
#include "stored_points.h"

namespace gpujoin::test {
namespace {

/// Columns of a side, with rows as long as the points.
struct Columns {
  std::vector<std::vector<double>> reals;
  std::vector<std::vector<std::int64_t>> integers;
  std::vector<const double*> real_pointers;
  std::vector<const std::int64_t*> integer_pointers;

  Columns(Random& random, std::uint64_t rows, int real_columns, int integer_columns) {
    for (int c = 0; c < real_columns; ++c) {
      auto& column = reals.emplace_back();
      for (std::uint64_t i = 0; i < rows; ++i)
        column.push_back(random.index(7) == 0 ? kNan : random.between(-3, 5));
    }
    for (int c = 0; c < integer_columns; ++c) {
      auto& column = integers.emplace_back();
      for (std::uint64_t i = 0; i < rows; ++i)
        column.push_back(static_cast<std::int64_t>(random.index(2001)) - 1000);
    }
    for (const auto& column : reals) real_pointers.push_back(column.data());
    for (const auto& column : integers) integer_pointers.push_back(column.data());
  }
};

ValueProgram program(std::vector<std::pair<ValueStep, std::uint32_t>> steps) {
  ValueProgram made{};
  for (const auto& [step, column] : steps) {
    made.steps[made.count] = step;
    made.columns[made.count++] = column;
  }
  return made;
}

constexpr auto kDistance = ValueStep::kDistance;
constexpr auto kLeft = ValueStep::kLeft;
constexpr auto kRight = ValueStep::kRight;

/// Every fold, over a right column, exp(-d) and left * right * sqrt(d).
PairSums every_fold(const Columns& left, const Columns& right) {
  PairSums sums{};
  sums.left_columns = static_cast<std::uint32_t>(left.reals.size());
  sums.right_columns = static_cast<std::uint32_t>(right.reals.size());
  sums.integer_columns = static_cast<std::uint32_t>(right.integers.size());
  sums.left = left.real_pointers.data();
  sums.right = right.real_pointers.data();
  sums.integers = right.integer_pointers.data();
  sums.program[sums.programs++] = program({{kRight, 1}});
  sums.program[sums.programs++] =
      program({{kDistance, 0}, {ValueStep::kNegate, 0}, {ValueStep::kExponential, 0}});
  sums.program[sums.programs++] = program({{kLeft, 0},
                                           {kRight, 0},
                                           {ValueStep::kMultiply, 0},
                                           {kDistance, 0},
                                           {ValueStep::kSquareRoot, 0},
                                           {ValueStep::kMultiply, 0}});
  for (const Fold fold : {Fold::kSum, Fold::kLeast, Fold::kMost})
    for (std::uint32_t c = 0; c < sums.integer_columns; ++c)
      sums.measure[sums.measures++] = {fold, c};
  for (std::uint32_t p = 0; p < sums.programs; ++p)
    for (const Fold fold :
         {Fold::kSumOf, Fold::kSquaresOf, Fold::kLeastOf, Fold::kMostOf, Fold::kCountOf})
      sums.measure[sums.measures++] = {fold, p};
  return sums;
}

/// What takes no arithmetic, over a right column and distances.
PairSums plain_folds(const Columns& left, const Columns& right) {
  PairSums sums = every_fold(left, right);
  sums.programs = sums.measures = 0;
  sums.program[sums.programs++] = program({{kRight, 1}});
  sums.program[sums.programs++] = program({{kDistance, 0}});
  for (std::uint32_t c = 0; c < sums.integer_columns; ++c)
    sums.measure[sums.measures++] = {Fold::kSum, c};
  for (std::uint32_t p = 0; p < sums.programs; ++p)
    for (const Fold fold : {Fold::kSumOf, Fold::kCountOf})
      sums.measure[sums.measures++] = {fold, p};
  return sums;
}

/// A program's value for a pair.
double value_of(const PairSums& sums, std::uint32_t number, const Columns& left,
                const Columns& right, std::uint64_t i, std::uint64_t j, double distance) {
  if (number == 0) return right.reals[1][j];
  if (sums.program[number].count == 1) return distance;
  if (number == 1) return std::exp(-distance);
  return left.reals[0][i] * right.reals[0][j] * std::sqrt(distance);
}

struct Row {
  std::uint64_t pairs = 0;
  std::vector<FoldWord> words;
};

/// Rows by id, which are numbers of rows.
std::map<std::int64_t, Row> run_sums(const EngineTable& engine, const JoinRequest& request,
                                     Status* status) {
  std::map<std::int64_t, Row> rows;
  const std::uint32_t width = row_words(*request.sums());
  Join* join = nullptr;
  *status = engine.open(&request, &join);
  if (!status->ok()) return rows;
  for (;;) {
    ResultBatch batch{};
    *status = engine.next_batch(join, &batch);
    if (!status->ok()) break;
    std::uint64_t pairs = 0;
    for (std::uint64_t i = 0; i < batch.row_count; ++i) {
      const FoldWord* const words = batch.sums + i * width;
      const auto [at, fresh] =
          rows.insert({batch.left_ids[batch.rows[i]], {batch.counts[i], {words, words + width}}});
      EXPECT_TRUE(fresh) << "a row came twice";
      pairs += batch.counts[i];
    }
    EXPECT_EQ(pairs, batch.pair_count);
  }
  engine.close(join);
  return rows;
}

/// What the loop over all pairs finds for one left row and measure.
struct Expected {
  std::uint64_t integer = 0;
  std::int64_t least = INT64_MAX, most = INT64_MIN;
  long double sum = 0, size = 0;  ///< size: of all terms
  std::uint64_t values = 0;
  double lowest = kInf, highest = -kInf;
};

class PairSumsTest : public EngineTest {
 protected:
  PairSums (*wanted_)(const Columns& left, const Columns& right) = every_fold;

  void expect_sums(const Points& left_points, const Points* right_points, PairSelection selection,
                   Metric metric, double eps, const Knobs& knobs) {
    expect_sums(engine(), left_points, right_points, selection, metric, eps, knobs, nullptr);
  }

  /// By an engine; with a file the points and their columns lie there.
  void expect_sums(const EngineTable& by, const Points& left_points, const Points* right_points,
                   PairSelection selection, Metric metric, double eps, const Knobs& knobs,
                   MemoryFile* file, std::uint64_t memory_limit = 0) {
    const Points& right_side = right_points == nullptr ? left_points : *right_points;
    Random random(7);
    const Columns left(random, left_points.rows(), 1, 0), right(random, right_side.rows(), 2, 2);
    PairSums sums = wanted_(left, right);
    JoinRequest request = make_request(left_points, right_points, metric, eps);
    request.resources.memory_limit = memory_limit;
    StoredPoints left_stored(left_points, 6), right_stored(right_side, 5);
    if (file != nullptr) {
      Dataset left_file = left_stored.in_file(*file), right_file = right_stored.in_file(*file);
      std::vector<const void*> of_left, of_right;
      for (const double* const column : left.real_pointers) of_left.push_back(column);
      for (const double* const column : right.real_pointers) of_right.push_back(column);
      for (const std::int64_t* const column : right.integer_pointers) of_right.push_back(column);
      if (right_points == nullptr) of_left.insert(of_left.end(), of_right.begin(), of_right.end());
      left_stored.add_columns(*file, of_left, &left_file);
      right_stored.add_columns(*file, of_right, &right_file);
      set_sides(request, left_file, right_file);
      request.resources.scratch = file->functions();
      sums.left = sums.right = nullptr;
      sums.integers = nullptr;
    }
    request.knobs = knobs;
    if (right_points == nullptr) select(request, selection);
    request = request.asking(Output::sums(&sums));
    Status status;
    const auto rows = run_sums(by, request, &status);
    if (is_device(engine()) && metric == Metric::kCosine) {
      EXPECT_EQ(status.code, StatusCode::kUnavailable);
      return;
    }
    ASSERT_EQ(status.code, StatusCode::kEnd) << status.message;
    ASSERT_EQ(rows.size(), left_points.rows());
    for (std::uint64_t i = 0; i < left_points.rows(); ++i) {
      std::vector<Expected> expected(sums.measures);
      std::uint64_t pairs = 0;
      std::vector<double> a(left_points.dims()), b(left_points.dims());
      const double* const x = left_points.row(i, a);
      for (std::uint64_t j = 0; j < right_side.rows(); ++j) {
        const double distance =
            definition_of_distance(metric, x, right_side.row(j, b), left_points.dims());
        if (!(distance <= eps)) continue;
        if (right_points == nullptr && selection != PairSelection::kAll && i == j) continue;
        if (right_points == nullptr && selection == PairSelection::kUnordered && i > j) continue;
        ++pairs;
        for (std::uint32_t m = 0; m < sums.measures; ++m)
          add(sums, m, left, right, i, j, distance, &expected[m]);
      }
      const Row& row = rows.at(static_cast<std::int64_t>(i));
      ASSERT_EQ(row.pairs, pairs) << "row " << i;
      EXPECT_EQ(row.words[0].number, 0u);
      const FoldWord* words = row.words.data() + 1;
      for (std::uint32_t m = 0; m < sums.measures; ++m) {
        expect_same(sums.measure[m], expected[m], words);
        if (HasFailure()) FAIL() << "row " << i << ", measure " << m;
        words += words_of(sums.measure[m].fold);
      }
    }
  }

 private:
  static void add(const PairSums& sums, std::uint32_t number, const Columns& left,
                  const Columns& right, std::uint64_t i, std::uint64_t j, double distance,
                  Expected* expected) {
    const Measure& measure = sums.measure[number];
    if (!computes(measure.fold)) {
      const std::int64_t value = right.integers[measure.number][j];
      expected->integer += static_cast<std::uint64_t>(value);
      expected->least = std::min(expected->least, value);
      expected->most = std::max(expected->most, value);
      return;
    }
    const double value = value_of(sums, measure.number, left, right, i, j, distance);
    if (std::isnan(value)) return;
    const long double term = measure.fold == Fold::kSquaresOf
                                 ? static_cast<long double>(value) * value
                                 : static_cast<long double>(value);
    expected->sum += term;
    expected->size += std::abs(term);
    ++expected->values;
    expected->lowest = std::min(expected->lowest, value);
    expected->highest = std::max(expected->highest, value);
  }

  static void expect_same(const Measure& measure, const Expected& expected, const FoldWord* words) {
    switch (measure.fold) {
      case Fold::kSum:
        EXPECT_EQ(words[0].number, expected.integer);
        break;
      case Fold::kLeast:
        EXPECT_EQ(words[0].integer, expected.least);
        break;
      case Fold::kMost:
        EXPECT_EQ(words[0].integer, expected.most);
        break;
      case Fold::kCountOf:
        EXPECT_EQ(words[0].number, expected.values);
        break;
      case Fold::kLeastOf:
      case Fold::kMostOf:
        if (expected.values > 0) {
          // exp() of a device may be off by an ulp or two.
          const double extreme =
              measure.fold == Fold::kLeastOf ? expected.lowest : expected.highest;
          EXPECT_NEAR(from_signed_order(words[0].integer), extreme, 4e-16 * std::abs(extreme));
        }
        break;
      default:
        EXPECT_NEAR(static_cast<double>((DoubleSum{words[0].real, words[1].real}).rounded()),
                    static_cast<double>(expected.sum), static_cast<double>(expected.size) * 1e-15);
    }
  }
};
GPUJOIN_ON_EVERY_ENGINE(PairSumsTest);

TEST_P(PairSumsTest, of_one_dataset_by_each_method_and_selection) {
  Random random(11);
  const Points points(3, make_values(Shape::kUniform, random, 300, 3));
  for (const IndexMethod method :
       {IndexMethod::kGrid, IndexMethod::kReferencePoints, IndexMethod::kTiles, IndexMethod::kNone})
    for (const PairSelection selection :
         {PairSelection::kAll, PairSelection::kDistinct, PairSelection::kUnordered}) {
      Knobs knobs;
      knobs.index = method;
      expect_sums(points, nullptr, selection, Metric::kL2, 25, knobs);
      if (HasFatalFailure()) return;
    }
}

TEST_P(PairSumsTest, of_two_datasets_in_each_metric) {
  Random random(12);
  const Points left(6, make_values(Shape::kUniform, random, 150, 6), ScalarType::kFloat32),
      right(6, make_values(Shape::kUniform, random, 400, 6), ScalarType::kFloat32);
  for (const auto& [metric, eps] : {std::pair{Metric::kL2, 60.0},
                                    {Metric::kL1, 120.0},
                                    {Metric::kLInf, 40.0},
                                    {Metric::kCosine, 0.1}}) {
    expect_sums(left, &right, PairSelection::kAll, metric, eps, {});
    if (HasFatalFailure()) return;
  }
}

/// Few candidates are no pairs: they need not be collected.
TEST_P(PairSumsTest, of_plain_columns_where_pairs_are_dense) {
  wanted_ = plain_folds;
  Random random(18);
  for (const std::uint32_t dims : {1u, 2u, 6u}) {
    Points points(dims, make_values(Shape::kUniform, random, 700, dims),
                  dims == 6 ? ScalarType::kFloat32 : ScalarType::kFloat64);
    for (const auto& [metric, eps] :
         {std::pair{Metric::kL2, 30.0}, {Metric::kL1, 50.0}, {Metric::kLInf, 200.0}}) {
      Knobs knobs;
      knobs.index = IndexMethod::kGrid;
      expect_sums(points, nullptr, PairSelection::kAll, metric, eps * dims, knobs);
      expect_sums(points, nullptr, PairSelection::kDistinct, metric, eps * dims, knobs);
      if (HasFatalFailure()) return;
    }
  }
  const Points left(2, make_values(Shape::kUniform, random, 5, 2)),
      right(2, make_values(Shape::kUniform, random, 5000, 2));
  expect_sums(left, &right, PairSelection::kAll, Metric::kL2, 60, {});
}

TEST_P(PairSumsTest, in_every_order_of_work) {
  Random random(13);
  const Points points(2, make_values(Shape::kClustered, random, 500, 2));
  for (const std::uint32_t threads : {1u, 8u, 32u})
    for (const WorkOrder order : {WorkOrder::kNone, WorkOrder::kSorted, WorkOrder::kQueue}) {
      Knobs knobs;
      knobs.threads_per_point = threads;
      knobs.work_order = order;
      knobs.batch_pairs = 37;
      expect_sums(points, nullptr, PairSelection::kAll, Metric::kL2, 5, knobs);
      if (HasFatalFailure()) return;
    }
}

/// Of one dataset and of two, as large as they are.
TEST_P(PairSumsTest, in_parts) {
  if (is_device(engine())) GTEST_SKIP() << "parts of a few rows are joined by the CPU engine";
  Random random(14);
  const Points points(2, make_values(Shape::kClustered, random, 350, 2)),
      others(2, make_values(Shape::kUniform, random, 210, 2));
  for (const std::uint64_t fitting : {SmallParts::kAll, std::uint64_t{130}}) {
    for (const bool in_file : {false, true}) {
      SmallParts::rows_that_fit = fitting;
      for (const PairSelection selection :
           {PairSelection::kAll, PairSelection::kDistinct, PairSelection::kUnordered}) {
        MemoryFile file;
        expect_sums(engine_of_parts(), points, nullptr, selection, Metric::kL2, 5, {},
                    in_file ? &file : nullptr);
        if (HasFatalFailure()) return;
      }
      for (const Metric metric : {Metric::kL2, Metric::kCosine}) {
        MemoryFile file;
        expect_sums(engine_of_parts(), points, &others, PairSelection::kAll, metric,
                    metric == Metric::kCosine ? 0.01 : 20, {}, in_file ? &file : nullptr);
        if (HasFatalFailure()) return;
      }
    }
  }
  SmallParts::rows_that_fit = SmallParts::kAll;
}

TEST_P(PairSumsTest, of_rows_that_do_not_fit_in_memory) {
  Random random(15);
  const Points points(2, make_values(Shape::kUniform, random, 3500, 2)),
      others(2, make_values(Shape::kUniform, random, 2000, 2));
  for (const bool in_file : {false, true})
    for (const Points* const right : {static_cast<const Points*>(nullptr), &others}) {
      MemoryFile file;
      expect_sums(engine(), points, right, PairSelection::kAll, Metric::kL2, 5, {},
                  in_file ? &file : nullptr, is_device(engine()) ? 0 : 2'500'000);
      if (HasFatalFailure()) return;
    }
}

TEST_P(PairSumsTest, rows_that_are_not_finite_have_no_pairs) {
  const Points points(2, {0, 0, kNan, 1, 0, 1, kInf, 0, 1, 1});
  expect_sums(points, nullptr, PairSelection::kAll, Metric::kL2, 2, {});
}

TEST_P(PairSumsTest, of_no_rows) {
  const Points none(2, {}), some(2, {0, 0, 1, 1});
  expect_sums(none, &some, PairSelection::kAll, Metric::kL2, 1, {});
  expect_sums(some, &none, PairSelection::kAll, Metric::kL2, 1, {});
}

TEST_P(PairSumsTest, values_out_of_range_are_counted_and_left_out) {
  const Points points(1, {0, 1, 2});
  const std::vector<double> numbers{1e-200, 1e200, 1};
  const double* const column = numbers.data();
  PairSums sums{};
  sums.right_columns = 1;
  sums.right = &column;
  sums.program[sums.programs++] = program({{kRight, 0}, {ValueStep::kSquare, 0}});
  sums.measure[sums.measures++] = {Fold::kSumOf, 0};
  sums.measure[sums.measures++] = {Fold::kCountOf, 0};
  const JoinRequest request =
      make_request(points, nullptr, Metric::kL2, 1).asking(Output::sums(&sums));
  Status status;
  const auto rows = run_sums(engine(), request, &status);
  ASSERT_EQ(status.code, StatusCode::kEnd) << status.message;
  const std::uint64_t lost[] = {2, 2, 1}, kept[] = {0, 1, 1};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(rows.at(i).words[0].number, lost[i]);
    EXPECT_EQ(rows.at(i).words[1].real, static_cast<double>(kept[i]));
    EXPECT_EQ(rows.at(i).words[3].number, kept[i]);
  }
}

TEST_P(PairSumsTest, malformed_sums_are_refused) {
  const Points points(1, {0, 1});
  const auto refuses = [&](const std::function<void(PairSums&)>& spoil) {
    PairSums sums{};
    sums.program[sums.programs++] = program({{kDistance, 0}});
    sums.measure[sums.measures++] = {Fold::kSumOf, 0};
    spoil(sums);
    const JoinRequest request =
        make_request(points, nullptr, Metric::kL2, 1).asking(Output::sums(&sums));
    Join* join = nullptr;
    EXPECT_EQ(engine().open(&request, &join).code, StatusCode::kInvalidArgument);
  };
  refuses([](PairSums& sums) { sums.measure[0].number = 1; });
  refuses([](PairSums& sums) { sums.measure[0].fold = Fold::kSum; });
  refuses([](PairSums& sums) { sums.program[0] = program({{kRight, 0}}); });
  refuses([](PairSums& sums) { sums.program[0] = program({{ValueStep::kNegate, 0}}); });
  refuses([](PairSums& sums) { sums.program[0] = program({{kDistance, 0}, {kDistance, 0}}); });
  refuses([](PairSums& sums) { sums.program[0] = program({}); });
}

// ---- Arithmetic

TEST(DoubleSum, loses_nothing_that_doubles_would) {
  DoubleSum sum{};
  for (const double x : {1e16, 1.0, -1e16, 1e-16}) sum.add(x);
  EXPECT_EQ(sum.rounded(), 1.0 + 1e-16);
  DoubleSum tenths{};
  for (int i = 0; i < 1000000; ++i) tenths.add(0.1);
  EXPECT_EQ(tenths.rounded(), 100000.0000000000055511151231257827);
}

TEST(DoubleSum, squares_are_exact) {
  DoubleSum sum{};
  const double x = 1 + 0x1p-52;
  sum.add_product(x, x);
  EXPECT_EQ(sum.high, 1 + 0x1p-51);
  EXPECT_EQ(sum.low, 0x1p-104);
}

/// Whether exp() of such a number is 0 or infinite depends on the library: PostgreSQL's decides.
TEST(PairValue, exponentials_near_the_ends_of_the_range_leave_it) {
  const auto leaves = [](double exponent) {
    bool left = false;
    operate(ValueStep::kExponential, exponent, 0, &left);
    return left;
  };
  for (const double out : {-kInf, -1e300, -745.14, -745.1, -709.0, 709.5, 709.8, 1e300, kInf})
    EXPECT_TRUE(leaves(out)) << out;
  for (const double in : {-707.0, -1.0, -kDenormal, 0.0, 1.0, 708.0})
    EXPECT_FALSE(leaves(in)) << in;
  EXPECT_FALSE(leaves(kNan)) << "NULL";
}

TEST(PairValue, signed_order_is_that_of_doubles) {
  const std::vector<double> ascending{-kInf, -1, -kDenormal, 0, kDenormal, 1, kMax, kInf};
  for (std::size_t i = 1; i < ascending.size(); ++i)
    EXPECT_LT(signed_order(ascending[i - 1]), signed_order(ascending[i]));
  for (const double x : ascending) EXPECT_EQ(from_signed_order(signed_order(x)), x);
}

}  // namespace
}  // namespace gpujoin::test
