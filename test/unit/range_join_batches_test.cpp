// How results are delivered: batches, early ends, memory limits and statistics. What is in them is
// the other range_join tests' matter.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <thread>
#include <vector>

#include "allocation_hooks.h"
#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

// Equal points, so kRows^2 pairs; enough of them for several workers.
constexpr std::uint64_t kRows = 400;
constexpr std::uint32_t kDims = 8;

std::ptrdiff_t threads_now() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

/// A thread that was joined may still be listed for a moment.
bool threads_fall_to(std::ptrdiff_t expected) {
  for (int i = 0; i < 2000 && threads_now() > expected; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return threads_now() <= expected;
}

class RangeJoinBatches : public EngineTest {
 protected:
  RangeJoinBatches()
      : points_(kDims, std::vector<double>(kDims * kRows, 1.0)),
        oracle_(points_, nullptr, Metric::kL2, 1) {}

  JoinRequest request(std::uint64_t batch_pairs, Output::Kind output = Output::kPairs) const {
    JoinRequest request = make_request(points_, nullptr, Metric::kL2, 1);
    request.knobs.batch_pairs = batch_pairs;
    ask(request, output);
    return request;
  }

  Points points_;
  Oracle oracle_;
};
GPUJOIN_ON_EVERY_ENGINE(RangeJoinBatches);

TEST_P(RangeJoinBatches, a_result_larger_than_a_batch_comes_in_several) {
  for (const std::uint64_t batch_pairs : {100, 1000, 20000}) {
    for (const Output::Kind output : {Output::kPairs, Output::kPairsWithDistances}) {
      for (const AccessPattern pattern : {AccessPattern::kFull, AccessPattern::kLinearId}) {
        JoinRequest join = request(batch_pairs, output);
        join.knobs.access_pattern = pattern;
        const RunResult result = run_join(engine(), join);
        EXPECT_TRUE(matches_oracle(result, join, oracle_));
        EXPECT_LE(result.largest_batch, 2 * batch_pairs)
            << "an entry may stand for a pair and its mirror";
        EXPECT_GE(result.batches, kRows * kRows / (2 * batch_pairs));
        EXPECT_EQ(result.stats.batches, result.batches);
      }
    }
  }
}

TEST_P(RangeJoinBatches, a_batch_may_hold_a_single_pair) {
  const Points few(1, std::vector<double>(40, 3.0));
  const Oracle oracle(few, nullptr, Metric::kL2, 0);
  JoinRequest join = make_request(few, nullptr, Metric::kL2, 0);
  join.knobs.batch_pairs = 1;
  EXPECT_TRUE(every_output_matches(engine(), join, oracle));
}

TEST_P(RangeJoinBatches, counts_come_in_batches_too) {
  const RunResult result = run_join(engine(), request(10, Output::kCountPerRow));
  EXPECT_TRUE(matches_oracle(result, request(10, Output::kCountPerRow), oracle_));
  EXPECT_GE(result.batches, kRows / 10);
}

TEST_P(RangeJoinBatches, the_end_stays_the_end) {
  const JoinRequest join_request = request(0, Output::kTotal);
  Join* join = nullptr;
  ASSERT_TRUE(engine().open(&join_request, &join).ok());
  ResultBatch batch{};
  while (engine().next_batch(join, &batch).ok()) {
  }
  EXPECT_EQ(engine().next_batch(join, &batch).code, StatusCode::kEnd);
  engine().close(join);
}

TEST_P(RangeJoinBatches, closing_early_frees_everything) {
  const JoinRequest join_request = request(50);
  run_join(engine(), join_request);  // whatever is made once, is made now
  const std::ptrdiff_t threads = threads_now();
  for (const int batches : {0, 1, 2, 30}) {
    const std::int64_t before = live_allocations();
    Join* join = nullptr;
    ASSERT_TRUE(engine().open(&join_request, &join).ok());
    for (int i = 0; i < batches; ++i) {
      ResultBatch batch{};
      ASSERT_TRUE(engine().next_batch(join, &batch).ok());
    }
    engine().close(join);
    expect_no_leak(engine(), before);
    EXPECT_TRUE(threads_fall_to(threads)) << "closed after " << batches << " batches";
  }
}

TEST_P(RangeJoinBatches, closing_early_leaves_most_of_the_work_undone) {
  const Points many(1, std::vector<double>(400000, 1.0));  // 160 billion pairs
  JoinRequest limited = make_request(many, nullptr, Metric::kL2, 0);
  limited.knobs.batch_pairs = 1000;
  Join* join = nullptr;
  ASSERT_TRUE(engine().open(&limited, &join).ok());
  ResultBatch batch{};
  ASSERT_TRUE(engine().next_batch(join, &batch).ok());
  JoinStats stats{};
  engine().stats(join, &stats);
  engine().close(join);
  EXPECT_EQ(stats.pairs, batch.pair_count);
  EXPECT_LT(stats.candidates, 40e9);
}

TEST_P(RangeJoinBatches, memory_stays_flat_whatever_the_result) {
  const Points many(2, std::vector<double>(2 * 2000, 1.0));  // 4 million pairs, 16 MB of positions
  JoinRequest lots = make_request(many, nullptr, Metric::kL2, 1);
  lots.knobs.batch_pairs = 1000;
  std::uint64_t pairs = 0;
  Join* join = nullptr;
  ASSERT_TRUE(engine().open(&lots, &join).ok());
  ResultBatch batch{};
  while (engine().next_batch(join, &batch).ok()) pairs += batch.pair_count;
  JoinStats stats{};
  engine().stats(join, &stats);
  engine().close(join);
  EXPECT_EQ(pairs, 2000u * 2000);
  EXPECT_LT(stats.memory_peak, 2u << 20);
  EXPECT_GT(stats.memory_peak, 0u);
}

TEST_P(RangeJoinBatches, a_memory_limit_too_small_is_an_error_with_a_hint) {
  for (const Output::Kind output :
       {Output::kPairs, Output::kPairsWithDistances, Output::kCountPerRow, Output::kTotal}) {
    for (const std::uint64_t limit : {1, 100, 3000}) {
      JoinRequest join = request(0, output);
      join.resources.memory_limit = limit;
      join.resources.device_memory_limit = limit;
      const std::int64_t before = live_allocations();
      {
        const RunResult result = run_join(engine(), join);
        EXPECT_EQ(result.status.code, StatusCode::kMemoryLimit) << result.status.message;
        EXPECT_STRNE(result.status.message, "");
        EXPECT_STRNE(result.status.hint, "");
      }
      expect_no_leak(engine(), before);
    }
  }
}

TEST_P(RangeJoinBatches, every_memory_limit_is_kept_or_refused) {
  const RunResult free_run = run_join(engine(), request(500));
  ASSERT_GT(free_run.stats.memory_peak, 0u);
  int refused = 0, served = 0;
  for (double limit = 256; limit < 4.0 * static_cast<double>(free_run.stats.memory_peak);
       limit *= 1.3) {
    JoinRequest join = request(500);
    join.resources.memory_limit = static_cast<std::uint64_t>(limit);
    for (const bool soft : {false, true}) {
      join.resources.soft_limits = soft;
      const RunResult result = run_join(engine(), join);
      if (!soft) {
        EXPECT_LE(result.stats.memory_peak, join.resources.memory_limit);
      }
      if (result.status.code == StatusCode::kMemoryLimit) {
        ++refused;
        EXPECT_TRUE(!soft || result.stats.batches == 0);
        continue;
      }
      ++served;
      EXPECT_TRUE(matches_oracle(result, join, oracle_));
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(served, 0);
}

TEST_P(RangeJoinBatches, tiles_keep_every_memory_limit_too) {
  JoinRequest join = request(500);
  join.knobs.index = IndexMethod::kTiles;
  const RunResult free_run = run_join(engine(), join);
  ASSERT_TRUE(matches_oracle(free_run, join, oracle_));
  int refused = 0, served = 0;
  for (double limit = 256; limit < 4.0 * static_cast<double>(free_run.stats.memory_peak);
       limit *= 1.3) {
    for (const Output::Kind output : {Output::kPairsWithDistances, Output::kCountPerRow}) {
      ask(join, output);
      join.resources.memory_limit = static_cast<std::uint64_t>(limit);
      const RunResult result = run_join(engine(), join);
      EXPECT_LE(result.stats.memory_peak, join.resources.memory_limit);
      const bool kept = result.status.code != StatusCode::kMemoryLimit;
      ++(kept ? served : refused);
      if (kept) {
        EXPECT_TRUE(matches_oracle(result, join, oracle_));
      }
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(served, 0);
}

TEST_P(RangeJoinBatches, tiles_whose_boxes_lie_apart_are_not_compared) {
  Random random(114);
  constexpr std::uint64_t kMany = 4000;
  std::vector<double> values = make_values(Shape::kUniform, random, kMany, 10);
  for (std::uint64_t row = 0; row < kMany; ++row) values[row * 10] = 1e4 * (row % 8);
  const Points points(10, values);
  JoinRequest join = make_request(points, nullptr, Metric::kL2, 100);
  join.knobs.index = IndexMethod::kTiles;
  ask(join, Output::kTotal);
  const RunResult result = run_join(engine(), join);
  EXPECT_EQ(result.stats.strategy.index, IndexMethod::kTiles);
  EXPECT_LT(result.stats.candidates, kMany * kMany / 2 / 5) << "of eight clusters of equal size";
  EXPECT_GE(2 * result.stats.candidates, result.total);
}

TEST_P(RangeJoinBatches, stats_add_up) {
  Random random(111);
  const Points left(3, make_values(Shape::kUniform, random, 200, 3));
  const Points right(3, make_values(Shape::kUniform, random, 150, 3));
  for (const Output::Kind output :
       {Output::kPairs, Output::kPairsWithDistances, Output::kCountPerRow, Output::kTotal}) {
    JoinRequest join = make_request(left, &right, Metric::kL2, 30);
    ask(join, output);
    join.resources.threads = 3;
    join.knobs.index = IndexMethod::kNone;
    const RunResult result = run_join(engine(), join);
    const JoinStats& stats = result.stats;
    EXPECT_EQ(stats.pairs, Oracle(left, &right, Metric::kL2, 30).total(PairSelection::kAll));
    EXPECT_EQ(stats.pairs, result.total);
    EXPECT_EQ(stats.batches, result.batches);
    EXPECT_EQ(stats.left_rows, 200u);
    EXPECT_EQ(stats.right_rows, 150u);
    EXPECT_EQ(stats.candidates, 200u * 150) << "brute force begins every distance";
    EXPECT_EQ(stats.strategy.index, IndexMethod::kNone);
    EXPECT_GE(stats.threads, 1u);
    EXPECT_LE(stats.threads, 3u);
    EXPECT_STRNE(stats.instruction_set, "");
    EXPECT_GE(stats.join_ms, 0);
    EXPECT_GE(stats.index_ms, 0);
  }
}

TEST_P(RangeJoinBatches, an_index_begins_fewer_distances) {
  Random random(112);
  const Points points(2, make_values(Shape::kUniform, random, 2000, 2));
  JoinRequest join = make_request(points, nullptr, Metric::kL2, 1);
  join.knobs.index = IndexMethod::kGrid;
  const RunResult result = run_join(engine(), join);
  EXPECT_LT(result.stats.candidates, 2000u * 2000 / 10);
  EXPECT_GE(2 * result.stats.candidates, result.total);
}

TEST_P(RangeJoinBatches, only_the_uncertain_band_is_rechecked) {
  Random random(113);
  const Points points(20, make_values(Shape::kUniform, random, 300, 20));
  std::vector<double> unused;
  const double eps =
      definition_of_distance(Metric::kL2, points.row(0, unused), points.row(1, unused), 20);
  JoinRequest join = make_request(points, nullptr, Metric::kL2, eps);
  // On a device only tiles are screened, in half precision.
  const bool half = is_device(engine());
  if (half) join.knobs.index = IndexMethod::kTiles;
  const RunResult result = run_join(engine(), join);
  EXPECT_TRUE(matches_oracle(result, join, Oracle(points, nullptr, Metric::kL2, eps)));
  EXPECT_GE(result.stats.rechecked, 1u) << "a pair lies exactly at eps";
  EXPECT_LT(result.stats.rechecked, half ? 300u * 299 / 2 / 10 : 100u);
}

}  // namespace
}  // namespace gpujoin::test
