// How the results of joins of boxes are delivered: batches, early ends, memory limits,
// interruptions and statistics. What is in them is box_join_test's matter.

#include <gtest/gtest.h>

#include <vector>

#include "allocation_hooks.h"
#include "boxes.h"
#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

constexpr std::uint64_t kRows = 300;  // equal boxes, so kRows^2 pairs

std::vector<double> equal_boxes(std::uint64_t rows) {
  std::vector<double> boxes;
  for (std::uint64_t row = 0; row < rows; ++row) append(boxes, {1, 1, 2, 2});
  return boxes;
}

class BoxJoinBatches : public BoxEngineTest {
 protected:
  BoxJoinBatches()
      : boxes_(4, equal_boxes(kRows)),
        others_(4, equal_boxes(kRows)),
        oracle_(Oracle::of_boxes(boxes_, &others_, Metric::kL2, 0)) {}

  JoinRequest request(BoxMethod method, std::uint64_t batch_pairs) const {
    JoinRequest request = make_box_request(boxes_, &others_, Metric::kL2, 0);
    request.knobs.box_method = method;
    request.knobs.batch_pairs = batch_pairs;
    return request;
  }

  Points boxes_, others_;
  Oracle oracle_;
};
GPUJOIN_ON_EVERY_ENGINE(BoxJoinBatches);

TEST_P(BoxJoinBatches, a_result_larger_than_a_batch_comes_in_several) {
  for (const BoxMethod method : kBoxMethods) {
    for (const std::uint64_t batch_pairs : {100, 20000}) {
      const JoinRequest join = request(method, batch_pairs);
      const RunResult result = run_join(engine(), join);
      EXPECT_TRUE(matches_oracle(result, join, oracle_));
      EXPECT_LE(result.largest_batch, batch_pairs);
      EXPECT_GE(result.batches, kRows * kRows / batch_pairs);
      EXPECT_EQ(result.stats.batches, result.batches);
    }
  }
}

TEST_P(BoxJoinBatches, a_batch_may_hold_a_single_pair) {
  const Points few(4, equal_boxes(25));
  for (const BoxMethod method : kBoxMethods) {
    for (const PairSelection pairs : {PairSelection::kAll, PairSelection::kUnordered}) {
      JoinRequest join = make_box_request(few, nullptr, Metric::kL2, 0);
      join.knobs.batch_pairs = 1;
      join.knobs.box_method = method;
      select(join, pairs);
      const RunResult result = run_join(engine(), join);
      EXPECT_TRUE(matches_oracle(result, join, Oracle::of_boxes(few, nullptr, Metric::kL2, 0)));
      EXPECT_LE(result.largest_batch, pairs == PairSelection::kAll ? 2u : 1u);
    }
  }
}

TEST_P(BoxJoinBatches, closing_early_frees_everything) {
  for (const BoxMethod method : kBoxMethods) {
    const JoinRequest join_request = request(method, 50);
    run_join(engine(), join_request);  // whatever is made once, is made now
    for (const int batches : {0, 1, 30}) {
      const std::int64_t before = live_allocations();
      Join* join = nullptr;
      ASSERT_TRUE(engine().open(&join_request, &join).ok());
      for (int i = 0; i < batches; ++i) {
        ResultBatch batch{};
        ASSERT_TRUE(engine().next_batch(join, &batch).ok());
      }
      engine().close(join);
      expect_no_leak(engine(), before);
    }
  }
}

TEST_P(BoxJoinBatches, closing_early_leaves_most_of_the_work_undone) {
  const Points many(4, equal_boxes(200000));  // 40 billion pairs
  for (const BoxMethod method : kBoxMethods) {
    JoinRequest limited = make_box_request(many, nullptr, Metric::kL2, 0);
    limited.knobs.batch_pairs = 1000;
    limited.knobs.box_method = method;
    Join* join = nullptr;
    ASSERT_TRUE(engine().open(&limited, &join).ok());
    ResultBatch batch{};
    ASSERT_TRUE(engine().next_batch(join, &batch).ok());
    JoinStats stats{};
    engine().stats(join, &stats);
    engine().close(join);
    EXPECT_EQ(stats.pairs, batch.pair_count);
    EXPECT_LT(stats.candidates, 10e9);
  }
}

TEST_P(BoxJoinBatches, memory_stays_flat_whatever_the_result) {
  const Points many(4, equal_boxes(2000));  // 4 million pairs, 16 MB of positions
  for (const BoxMethod method : kBoxMethods) {
    JoinRequest lots = make_box_request(many, nullptr, Metric::kL2, 0);
    lots.knobs.batch_pairs = 1000;
    lots.knobs.box_method = method;
    ask(lots, Output::kPairs);
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
}

TEST_P(BoxJoinBatches, every_memory_limit_is_kept_or_refused) {
  for (const BoxMethod method :
       {BoxMethod::kLayeredGrid, BoxMethod::kSortSweep, BoxMethod::kNone}) {
    const RunResult free_run = run_join(engine(), request(method, 500));
    ASSERT_GT(free_run.stats.memory_peak, 0u);
    int refused = 0, served = 0;
    for (double limit = 1; limit < 4.0 * static_cast<double>(free_run.stats.memory_peak);
         limit *= 1.5) {
      JoinRequest join = request(method, 500);
      join.resources.memory_limit = static_cast<std::uint64_t>(limit);
      for (const bool soft : {false, true}) {
        join.resources.soft_limits = soft;
        const std::int64_t before = live_allocations();
        {
          const RunResult result = run_join(engine(), join);
          if (!soft) {
            EXPECT_LE(result.stats.memory_peak, join.resources.memory_limit);
          }
          if (result.status.code == StatusCode::kMemoryLimit) {
            ++refused;
            EXPECT_STRNE(result.status.hint, "");
            EXPECT_TRUE(!soft || result.stats.batches == 0);
          } else {
            ++served;
            EXPECT_TRUE(matches_oracle(result, join, oracle_));
          }
        }
        expect_no_leak(engine(), before);
      }
    }
    EXPECT_GT(refused, 0);
    EXPECT_GT(served, 0);
  }
}

TEST_P(BoxJoinBatches, an_interrupted_join_goes_on_when_called_again) {
  const Points many(4, equal_boxes(is_device(engine()) ? 200000 : 40000));
  JoinRequest join = make_box_request(many, nullptr, Metric::kL2, 0);
  ask(join, Output::kTotal);
  join.knobs.box_method = BoxMethod::kNone;
  volatile int flag = 1;
  join.resources.interrupt = &flag;
  const RunResult result = run_join(engine(), join, &flag);
  EXPECT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
  EXPECT_EQ(result.interruptions, 1u);
  EXPECT_EQ(result.total, many.rows() * many.rows());
}

TEST_P(BoxJoinBatches, stats_add_up) {
  Random random(221);
  const Points left(6, make_boxes(Shape::kUniform, random, 200, 3, 10));
  const Points right(6, make_boxes(Shape::kUniform, random, 150, 3, 10));
  const Oracle oracle = Oracle::of_boxes(left, &right, Metric::kL2, 9);
  for (const Output::Kind output : {Output::kPairs, Output::kTotal}) {
    JoinRequest join = make_box_request(left, &right, Metric::kL2, 9);
    ask(join, output);
    join.resources.threads = 3;
    join.knobs.box_method = BoxMethod::kNone;
    const RunResult result = run_join(engine(), join);
    const JoinStats& stats = result.stats;
    EXPECT_EQ(stats.pairs, oracle.total(PairSelection::kAll));
    EXPECT_EQ(stats.batches, result.batches);
    EXPECT_EQ(stats.left_rows, 200u);
    EXPECT_EQ(stats.right_rows, 150u);
    EXPECT_EQ(stats.candidates, 200u * 150) << "each box is compared with each";
    EXPECT_EQ(stats.box_method, BoxMethod::kNone);
    EXPECT_STRNE(stats.strategy.reason, "");
    EXPECT_STRNE(stats.instruction_set, "");
    EXPECT_GE(stats.join_ms, 0);
    EXPECT_GE(stats.index_ms, 0);
  }
}

TEST_P(BoxJoinBatches, indexes_compare_fewer_boxes) {
  Random random(222);
  const Points boxes(4, make_boxes(Shape::kUniform, random, 4000, 2, 1));
  for (const BoxMethod method : {BoxMethod::kLayeredGrid, BoxMethod::kSortSweep}) {
    JoinRequest join = make_box_request(boxes, nullptr, Metric::kL2, 0);
    join.knobs.box_method = method;
    const RunResult result = run_join(engine(), join);
    EXPECT_LT(result.stats.candidates, 4000u * 4000 / 2 / 20);
    EXPECT_GE(2 * result.stats.candidates, result.total);
  }
}

}  // namespace
}  // namespace gpujoin::test
