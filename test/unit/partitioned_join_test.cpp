// Joins in parts: of data that lies in a file, and of data whose indexes do not fit in memory.

#include "engine/joins/partitioned_join.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "engine/stopwatch.h"
#include "engine_harness.h"
#include "points.h"
#include "small_parts.h"
#include "stored_points.h"

namespace gpujoin::test {
namespace {

Points random_points(std::uint32_t dims, std::uint64_t rows, std::uint64_t seed,
                     ScalarType scalar = ScalarType::kFloat64) {
  Random random(seed);
  std::vector<double> values(rows * dims);
  for (double& x : values) x = random.unit();
  if (rows > 10) {
    values[3 * dims] = kNan;
    values[5 * dims] = kInf;
    for (std::uint32_t d = 0; d < dims; ++d) values[7 * dims + d] = values[8 * dims + d];
  }
  std::vector<std::int64_t> ids(rows);
  for (std::uint64_t row = 0; row < rows; ++row)
    ids[row] = static_cast<std::int64_t>(row * 7919 % (rows + 13)) - 5;
  return Points(dims, values, scalar).with_ids(ids);
}

Points scored_points(std::uint32_t dims, std::uint64_t rows, std::uint64_t seed) {
  Random random(seed + 100);
  std::vector<double> scores(rows);
  for (double& score : scores) score = std::floor(random.unit() * 50);
  return random_points(dims, rows, seed).with_scores(scores);
}

class PartitionedJoins : public EngineTest {};
GPUJOIN_ON_EVERY_ENGINE(PartitionedJoins);

TEST(PartitionedJoin, every_output_is_as_of_the_whole) {
  std::optional<std::size_t> third;  // of the outputs of self-joins, for a sanitizer
  for (const std::uint64_t fitting : {SmallParts::kAll, std::uint64_t{90}}) {
    SmallParts::rows_that_fit = fitting;
    for (const std::uint32_t dims : {1u, 3u}) {
      SmallParts::ahead = dims == 3;
      for (const Metric metric : kMetrics) {
        if (kSanitized) third = third.value_or(0) + 1;
        const double eps = metric == Metric::kCosine ? 0.02 : 0.03 * dims;
        const Points left = random_points(dims, 450, dims),
                     right = random_points(dims, 320, dims + 9);
        EXPECT_TRUE(every_output_matches(engine_of_parts(),
                                         make_request(left, nullptr, metric, eps),
                                         Oracle(left, nullptr, metric, eps), third));
        EXPECT_TRUE(every_output_matches(engine_of_parts(), make_request(left, &right, metric, eps),
                                         Oracle(left, &right, metric, eps)));
      }
    }
  }
  SmallParts::rows_that_fit = SmallParts::kAll;
  SmallParts::ahead = false;
}

TEST(PartitionedJoin, lack_of_memory_ends_no_join_that_has_delivered_where_limits_are_soft) {
  const Points left = random_points(2, 450, 1), right = random_points(2, 320, 2);
  const Oracle one(left, nullptr, Metric::kL2, 0.05), two(left, &right, Metric::kL2, 0.05);
  for (const Output::Kind output : {Output::kPairs, Output::kCountPerRow, Output::kTotal}) {
    for (const std::uint64_t steps : {0, 1, 2, 4, 100, 101, 102, 104}) {
      SmallParts::steps_that_fit = steps % 100;
      SmallParts::ahead = steps >= 100;
      for (const Points* other : {static_cast<const Points*>(nullptr), &right}) {
        JoinRequest join = make_request(left, other, Metric::kL2, 0.05);
        ask(join, output);
        EXPECT_EQ(run_join(engine_of_parts(), join).status.code, StatusCode::kMemoryLimit);
        join.resources.soft_limits = true;
        const RunResult result = run_join(engine_of_parts(), join);
        if (result.status.code == StatusCode::kMemoryLimit)
          EXPECT_EQ(result.stats.batches, 0u);
        else
          EXPECT_TRUE(matches_oracle(result, join, other == nullptr ? one : two));
        if (output == Output::kPairs) {
          EXPECT_EQ(result.status.code,
                    steps % 100 == 0 ? StatusCode::kMemoryLimit : StatusCode::kEnd);
        }
      }
    }
  }
  SmallParts::steps_that_fit = SmallParts::kAll;
  SmallParts::ahead = false;
}

/// Joins that take all memory but that of two parts. The first one of two parts begins only when a
/// third one is in memory.
class TightParts final : public PartJoins {
 public:
  static constexpr std::uint64_t kRows = 100;

  TightParts(const JoinRequest& request, std::shared_ptr<MemoryBudget> budget, bool* has_met_third)
      : parts_(request), budget_(std::move(budget)), has_met_third_(*has_met_third) {}

  Cut cut() override { return parts_.cut(); }
  std::uint64_t part_rows() override { return kRows; }
  bool loads_ahead() const override { return true; }
  std::unique_ptr<Join> open(const JoinRequest& part, std::shared_ptr<SideSlot> left,
                             std::shared_ptr<SideSlot> right) override {
    const Stopwatch waiting;
    const auto has_third = [this] {
      return budget_->used() > kHeldBytes + 2 * kRows * kRowBytes + kFewestRows * kRowBytes;
    };
    while (!part.self_join() && !has_met_third_ && !has_third() && waiting.milliseconds() < 10'000)
      std::this_thread::yield();
    has_met_third_ = has_met_third_ || has_third();
    const Buffer<unsigned char> all(*budget_, kLimit - kHeldBytes - 2 * kRows * kRowBytes);
    return parts_.open(part, left, right);
  }
  void enforce_limits(bool enforced) override { budget_->enforce(enforced); }

  static constexpr std::uint64_t kAllRows = 1000, kRowBytes = 8, kFewestRows = 20,
                                 kHeldBytes = kAllRows * sizeof(std::uint32_t), kLimit = 100'000;

 private:
  SmallParts parts_;
  std::shared_ptr<MemoryBudget> budget_;
  bool& has_met_third_;
};

TEST(PartitionedJoin, a_part_that_is_loaded_ahead_goes_where_a_step_wants_its_memory) {
  std::vector<double> values(TightParts::kAllRows);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 37 % 1000);
  const Points points(1, values);
  const JoinRequest request = make_request(points, nullptr, Metric::kL2, 2).asking(Output::total());
  const RunResult as_ever = run_join(engine_of_parts(), request);
  bool has_met_third = false;
  auto budget = std::make_shared<MemoryBudget>(TightParts::kLimit);
  PartitionedJoin join(request, budget,
                       std::make_unique<TightParts>(request, budget, &has_met_third));
  ResultBatch batch{};
  ASSERT_TRUE(join.next_batch(&batch).ok());
  EXPECT_EQ(batch.pair_count, as_ever.total);
  EXPECT_EQ(join.next_batch(&batch).code, StatusCode::kEnd);
  JoinStats stats{};
  join.stats(&stats);
  EXPECT_TRUE(has_met_third);
  EXPECT_EQ(stats.parts, as_ever.stats.parts) << "a step was split";
}

TEST(PartitionedJoin, can_be_left_while_a_part_is_loaded_ahead) {
  SmallParts::ahead = true;
  const Points points = random_points(2, 450, 1);
  for (const int batches : {0, 1, 2, 3}) {
    const JoinRequest request = make_request(points, nullptr, Metric::kL2, 0.05);
    Join* join = nullptr;
    ASSERT_TRUE(engine_of_parts().open(&request, &join).ok());
    ResultBatch batch{};
    for (int i = 0; i < batches; ++i) EXPECT_TRUE(engine_of_parts().next_batch(join, &batch).ok());
    engine_of_parts().close(join);
  }
  SmallParts::ahead = false;
}

TEST(PartitionedJoin, rows_that_meet_no_part_are_counted) {
  const Points left(1, std::vector<double>(250, 0.0)), right(1, std::vector<double>(150, 9.0));
  const Points none(1, {});
  for (const Points* other : {&right, &none}) {
    JoinRequest join = make_request(left, other, Metric::kL2, 1);
    ask(join, Output::kCountPerRow);
    const RunResult result = run_join(engine_of_parts(), join);
    EXPECT_TRUE(matches_oracle(result, join, Oracle(left, other, Metric::kL2, 1)));
    EXPECT_EQ(result.counts.size(), 250u);
  }
}

TEST(PartitionedJoin, distant_parts_do_not_meet) {
  std::vector<double> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 37 % 1000);
  const Points points(1, values);
  JoinRequest join = make_request(points, nullptr, Metric::kL2, 2);
  ask(join, Output::kTotal);
  const RunResult result = run_join(engine_of_parts(), join);
  EXPECT_EQ(result.total, 1000u + 2 * (999u + 998u));
  // Each part with itself and the next one.
  EXPECT_LE(result.stats.parts, 2 * (1000u / SmallParts::rows + 3));
}

TEST_P(PartitionedJoins, data_in_a_file_is_joined_as_data_in_memory) {
  for (const std::uint32_t dims : {1u, 2u, 5u, 20u}) {
    for (const Metric metric : kMetrics) {
      if (metric == Metric::kCosine && is_device(engine())) continue;
      const double eps = metric == Metric::kCosine ? 0.02 : 0.05 * dims;
      const Points left = random_points(dims, 300, dims),
                   right = random_points(dims, 200, dims + 9);
      MemoryFile file;
      StoredPoints stored_left(left, 6), stored_right(right, 7);
      JoinRequest self = make_request(left, nullptr, metric, eps);
      const Dataset left_file = stored_left.in_file(file);
      set_sides(self, left_file, left_file);
      self.resources.scratch = file.functions();
      EXPECT_TRUE(every_output_matches(engine(), self, Oracle(left, nullptr, metric, eps)));
      const Oracle oracle(left, &right, metric, eps);
      JoinRequest two = make_request(left, &right, metric, eps);
      set_sides(two, stored_left.in_file(file), stored_right.in_file(file));
      two.resources.scratch = file.functions();
      EXPECT_TRUE(every_output_matches(engine(), two, oracle));
      set_sides(two, two.left(), right.view());  // one side in memory
      EXPECT_TRUE(every_output_matches(engine(), two, oracle));
    }
  }
}

TEST_P(PartitionedJoins, the_best_pairs_of_a_file_are_those_of_memory) {
  const Points left = scored_points(2, 400, 3), right = scored_points(2, 250, 4);
  for (const ScoreFunction function :
       {ScoreFunction::kDistance, ScoreFunction::kSum, ScoreFunction::kProduct}) {
    for (const std::uint64_t k : {1, 50, 100000}) {
      for (const Points* other : {static_cast<const Points*>(nullptr), &right}) {
        const Top top{{function, function == ScoreFunction::kDistance, {1, 0.5}}, k};
        MemoryFile file;
        StoredPoints stored_left(left, 6), stored_right(right, 7);
        JoinRequest join =
            make_request(left, other, Metric::kL2, 0.1).asking(Output::top_pairs(top));
        set_sides(join, stored_left.in_file(file), stored_right.in_file(file));
        join.resources.scratch = file.functions();
        const Oracle oracle(left, other, Metric::kL2, 0.1);
        EXPECT_TRUE(matches_oracle(run_join(engine(), join), join, oracle));
        if (is_device(engine())) continue;
        join.resources.memory_limit = 5'000'000;
        EXPECT_TRUE(matches_oracle(run_join(engine(), join), join, oracle));
      }
    }
  }
}

TEST_P(PartitionedJoins, the_best_pairs_of_scores_take_parts_where_their_index_does_not_fit) {
  if (is_device(engine())) GTEST_SKIP() << "the index is on the device";
  const Points points = scored_points(2, 4000, 7);
  const Top top{{ScoreFunction::kSum, false, {1, 1}}, 20};
  JoinRequest join =
      make_request(points, nullptr, Metric::kL2, 0.01).asking(Output::top_pairs(top));
  join.resources.memory_limit = 450'000;
  for (const TopkMethod method : {TopkMethod::kThreshold, TopkMethod::kHeap}) {
    join.knobs.topk_method = method;
    const RunResult result = run_join(engine(), join);
    EXPECT_TRUE(matches_oracle(result, join, Oracle(points, nullptr, Metric::kL2, 0.01)));
  }
}

/// Once to divide the rows, and once each part.
TEST_P(PartitionedJoins, parts_in_a_row_are_read_once) {
  if (is_device(engine())) GTEST_SKIP() << "how large parts are depends on the device";
  const std::uint64_t rows = 6000;
  const Points left = random_points(1, rows, 4), right = random_points(1, rows, 5);
  for (const Output::Kind output : {Output::kPairs, Output::kCountPerRow, Output::kTotal}) {
    for (const Points* other : {static_cast<const Points*>(nullptr), &right}) {
      MemoryFile file;
      StoredPoints stored_left(left, 6), stored_right(right, 6);
      JoinRequest join = make_request(left, other, Metric::kL2, 0.0005);
      ask(join, output);
      set_sides(join, stored_left.in_file(file), stored_right.in_file(file));
      join.resources.scratch = file.functions();
      join.resources.memory_limit = 300'000;
      const RunResult result = run_join(engine(), join);
      EXPECT_TRUE(matches_oracle(result, join, Oracle(left, other, Metric::kL2, 0.0005)));
      EXPECT_GT(result.stats.parts, 8u);
      EXPECT_EQ(file.bytes_read(), 2 * 16 * rows * (other == nullptr ? 1 : 2));
    }
  }
}

TEST_P(PartitionedJoins, an_empty_side_meets_no_row_of_a_file) {
  const Points points = random_points(2, 200, 6), none(2, {});
  MemoryFile file;
  StoredPoints stored(points, 6);
  for (const bool left_is_empty : {false, true}) {
    JoinRequest join = make_request(points, &none, Metric::kL2, 1);
    const Dataset in_file = stored.in_file(file);
    if (left_is_empty)
      set_sides(join, none.view(), in_file);
    else
      set_sides(join, in_file, none.view());
    join.resources.scratch = file.functions();
    const Oracle oracle(left_is_empty ? none : points, left_is_empty ? &points : &none, Metric::kL2,
                        1);
    EXPECT_TRUE(every_output_matches(engine(), join, oracle));
  }
}

TEST_P(PartitionedJoins, chunks_are_joined_as_one_array) {
  for (const ScalarType scalar : {ScalarType::kFloat32, ScalarType::kFloat64}) {
    const Points left = random_points(3, 300, 4, scalar), right = random_points(3, 200, 5, scalar);
    for (const std::uint32_t bits : {0u, 3u, 7u, 20u}) {
      const StoredPoints left_chunks(left, bits), right_chunks(right, 4);
      JoinRequest join = make_request(left, &right, Metric::kL2, 0.2);
      set_sides(join, left_chunks.in_chunks(), right_chunks.in_chunks());
      EXPECT_TRUE(every_output_matches(engine(), join, Oracle(left, &right, Metric::kL2, 0.2)));
      JoinRequest self = make_request(left, nullptr, Metric::kL2, 0.2);
      set_sides(self, left_chunks.in_chunks(), left_chunks.in_chunks());
      EXPECT_TRUE(every_output_matches(engine(), self, Oracle(left, nullptr, Metric::kL2, 0.2)));
    }
  }
}

TEST_P(PartitionedJoins, indexes_that_do_not_fit_take_parts) {
  if (is_device(engine())) GTEST_SKIP() << "the index is on the device";
  const Points points = random_points(2, 4000, 7);
  const Oracle oracle(points, nullptr, Metric::kL2, 0.01);
  JoinRequest join = make_request(points, nullptr, Metric::kL2, 0.01);
  join.resources.memory_limit = 350'000;
  EXPECT_TRUE(every_output_matches(engine(), join, oracle));
  const RunResult result = run_join(engine(), join);
  EXPECT_GT(result.stats.parts, 1u);
  EXPECT_LE(result.stats.memory_peak, join.resources.memory_limit);
}

TEST_P(PartitionedJoins, equal_values_take_no_more_memory_than_others) {
  const Points points(1, std::vector<double>(1000, 3.0));
  MemoryFile file;
  StoredPoints stored(points, 6);
  JoinRequest join = make_request(points, nullptr, Metric::kL2, 0);
  const Dataset in_file = stored.in_file(file);
  set_sides(join, in_file, in_file);
  join.resources.scratch = file.functions();
  join.resources.memory_limit = 300'000;
  ask(join, Output::kTotal);
  const RunResult result = run_join(engine(), join);
  EXPECT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
  EXPECT_EQ(result.total, 1000u * 1000u);
  EXPECT_LE(result.stats.memory_peak, join.resources.memory_limit);
}

TEST_P(PartitionedJoins, a_failing_file_ends_the_join) {
  const Points points = random_points(2, 600, 3);
  for (std::uint64_t calls = 0; calls < 60; calls += 7) {
    MemoryFile file;
    StoredPoints stored(points, 6);
    JoinRequest join = make_request(points, nullptr, Metric::kL2, 0.1);
    const Dataset in_file = stored.in_file(file);
    set_sides(join, in_file, in_file);
    join.resources.scratch = file.functions();
    join.resources.memory_limit = 400'000;
    file.fail_after(calls);
    const RunResult result = run_join(engine(), join);
    EXPECT_TRUE(result.status.code == StatusCode::kCallerFailed ||
                result.status.code == StatusCode::kEnd);
    if (calls == 0) {
      EXPECT_EQ(result.status.code, StatusCode::kCallerFailed);
    }
  }
}

}  // namespace
}  // namespace gpujoin::test
