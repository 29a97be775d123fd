// Every allocation an engine makes fails once, with data enough for several workers: the join must
// report kOutOfMemory or survive with the right answer, leave nothing behind, and the next join
// must work.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "allocation_hooks.h"
#include "boxes.h"
#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

class AllocationFailures : public EngineTest {
 protected:
  /// A run in which the `nth` allocation fails. Only the engine's own allocations are meant: those
  /// of this test neither fail nor count.
  RunResult run_failing(const JoinRequest& request, std::uint64_t nth, Failing failing,
                        bool* happened, Throwing throwing = Throwing::kBadAlloc) {
    RunResult result;
    const AllocationFailure failure(nth, failing, throwing);
    Join* join = nullptr;
    result.status = engine().open(&request, &join);
    while (result.status.ok()) {
      ResultBatch batch{};
      result.status = engine().next_batch(join, &batch);
      const NoAllocationFailure own;
      if (result.status.ok()) collect(request, batch, &result);
    }
    const NoAllocationFailure own;
    if (join != nullptr) {
      engine().stats(join, &result.stats);
      engine().close(join);
    }
    *happened = failure.happened();
    sort_result(request, &result);
    return result;
  }

  void expect_survival(const JoinRequest& request, const Oracle& oracle, Failing failing) {
    ASSERT_TRUE(matches_oracle(run_join(engine(), request), request,
                               oracle));  // whatever is made once, is made now
    std::uint64_t failed_runs = 0;
    for (std::uint64_t nth = 0;; ++nth) {
      const std::int64_t before = live_allocations();
      bool happened = false;
      {
        const RunResult result = run_failing(request, nth, failing, &happened);
        if (result.status.code == StatusCode::kOutOfMemory) {
          ++failed_runs;
          ASSERT_STRNE(result.status.message, "");
        } else {
          ASSERT_TRUE(matches_oracle(result, request, oracle)) << "allocation " << nth;
        }
      }
      ASSERT_EQ(live_allocations(), before) << "leaked when allocation " << nth << " failed";
      if (!happened) break;
      ASSERT_LT(nth, 100000u);
    }
    EXPECT_GT(failed_runs, is_device(engine()) ? 3u : 10u)
        << "no allocation of the engine was made to fail";
    EXPECT_TRUE(matches_oracle(run_join(engine(), request), request, oracle))
        << "the join after the failures";
  }

  void expect_survival(const JoinRequest& request, const Oracle& oracle) {
    expect_survival(request, oracle, Failing::kOnlyThis);
    expect_survival(request, oracle, Failing::kThisAndAllLater);
  }
};
GPUJOIN_ON_EVERY_ENGINE(AllocationFailures);

TEST_P(AllocationFailures, pairs_of_a_self_join) {
  Random random(101);
  const Points points(3, make_values(Shape::kClustered, random, 900, 3));
  const Oracle oracle(points, nullptr, Metric::kL2, 0.1);
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 0.1);
  request.knobs.batch_pairs = 50;
  request.resources.threads = 3;
  expect_survival(request, oracle);
}

TEST_P(AllocationFailures, distances_of_a_screened_join_of_two) {
  Random random(102);
  const Points left(12, make_values(Shape::kLattice, random, 400, 12), ScalarType::kFloat32);
  const Points right(12, make_values(Shape::kLattice, random, 300, 12), ScalarType::kFloat32);
  const double eps = std::sqrt(12.0);
  const Oracle oracle(left, &right, Metric::kL2, eps);
  JoinRequest request = make_request(left, &right, Metric::kL2, eps);
  ask(request, Output::kPairsWithDistances);
  request.knobs.index = IndexMethod::kGrid;
  expect_survival(request, oracle);
}

TEST_P(AllocationFailures, every_output_of_tiles) {
  Random random(104);
  const Points left(40, make_values(Shape::kClustered, random, 300, 40));
  const Points right(40, make_values(Shape::kClustered, random, 200, 40));
  const double eps = 4;
  for (const Output::Kind output :
       {Output::kPairs, Output::kPairsWithDistances, Output::kCountPerRow}) {
    const Points* const other = output == Output::kPairsWithDistances ? &right : nullptr;
    const Oracle oracle(left, other, Metric::kL2, eps);
    JoinRequest request = make_request(left, other, Metric::kL2, eps);
    ask(request, output);
    request.knobs.index = IndexMethod::kTiles;
    request.knobs.batch_pairs = 50;
    expect_survival(request, oracle, Failing::kOnlyThis);
  }
}

TEST_P(AllocationFailures, pairs_of_boxes_by_every_method) {
  Random random(105);
  const Points left(4, make_boxes(Shape::kUniform, random, 500, 2, 5));
  const Points right(4, make_boxes(Shape::kUniform, random, 400, 2, 5));
  JoinRequest request = make_box_request(left, &right, Metric::kL2, 1);
  const Oracle oracle = Oracle::of_boxes(left, &right, Metric::kL2, 1);
  request.knobs.batch_pairs = 50;
  request.resources.threads = 3;
  for (const BoxMethod method :
       {BoxMethod::kLayeredGrid, BoxMethod::kSortSweep, BoxMethod::kNone}) {
    request.knobs.box_method = method;
    expect_survival(request, oracle);
  }
}

TEST_P(AllocationFailures, counts_and_total) {
  Random random(103);
  const Points points(2, make_values(Shape::kExponential, random, 1100, 2));
  const Oracle oracle(points, nullptr, Metric::kL1, 0.5);
  JoinRequest request = make_request(points, nullptr, Metric::kL1, 0.5);
  ask(request, Output::kCountPerRow);
  select(request, PairSelection::kUnordered);
  expect_survival(request, oracle, Failing::kOnlyThis);
  ask(request, Output::kTotal);
  request.knobs.index = IndexMethod::kNone;
  expect_survival(request, oracle, Failing::kOnlyThis);
}

TEST_P(AllocationFailures, top_pairs_by_every_method) {
  Random random(105);
  constexpr std::uint64_t kLefts = kSanitized ? 300 : 700, kRights = kLefts - 100;
  std::vector<double> left_scores(kLefts), right_scores(kRights);
  for (double& score : left_scores) score = random.between(-1, 2);
  for (double& score : right_scores) score = random.between(-2, 1);
  const Points left =
      Points(2, make_values(Shape::kClustered, random, kLefts, 2)).with_scores(left_scores);
  const Points right =
      Points(2, make_values(Shape::kClustered, random, kRights, 2)).with_scores(right_scores);
  for (const Points* const other : {static_cast<const Points*>(nullptr), &right}) {
    const Oracle oracle(left, other, Metric::kL2, 0.3);
    for (const ScoreFunction function : {ScoreFunction::kProduct, ScoreFunction::kDistance}) {
      for (const TopkMethod method : {TopkMethod::kThreshold, TopkMethod::kHeap}) {
        JoinRequest request = make_request(left, other, Metric::kL2, 0.3);
        request = request.asking(Output::top_pairs({{function, true, {1, 1}}, 30}));
        request.knobs.topk_method = method;
        expect_survival(request, oracle, Failing::kOnlyThis);
      }
    }
  }
}

TEST_P(AllocationFailures, exceptions_that_nobody_expects_are_errors) {
  Random random(106);
  const Points points(3, make_values(Shape::kClustered, random, 900, 3));
  const Oracle oracle(points, nullptr, Metric::kL2, 0.1);
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 0.1);
  request.knobs.batch_pairs = 50;
  request.resources.threads = 3;
  ASSERT_TRUE(matches_oracle(run_join(engine(), request), request, oracle));
  std::uint64_t internal = 0;
  bool happened = true;
  for (std::uint64_t nth = 0; happened; ++nth) {
    const std::int64_t before = live_allocations();
    {
      const RunResult result =
          run_failing(request, nth, Failing::kOnlyThis, &happened, Throwing::kLengthError);
      internal += result.status.code == StatusCode::kInternal;
      if (result.status.code == StatusCode::kEnd) {
        ASSERT_TRUE(matches_oracle(result, request, oracle)) << "allocation " << nth;
      } else {
        ASSERT_TRUE(result.status.code == StatusCode::kInternal ||
                    result.status.code == StatusCode::kOutOfMemory)
            << result.status.message;
        ASSERT_STRNE(result.status.message, "");
      }
    }
    ASSERT_EQ(live_allocations(), before) << "leaked when allocation " << nth << " failed";
  }
  EXPECT_GT(internal, 0u);
  EXPECT_TRUE(matches_oracle(run_join(engine(), request), request, oracle));
}

TEST_P(AllocationFailures, a_dataset_large_enough_to_be_sorted_in_parallel) {
  // Pairs of equal values at the distance of half the rows.
  constexpr std::uint64_t kRows = 20000;
  std::vector<double> values(kRows);
  for (std::uint64_t row = 0; row < kRows; ++row)
    values[row] = static_cast<double>(row * 7919 % (kRows / 2));
  const Points points(1, values);
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 0);
  ask(request, Output::kTotal);
  const RunResult clean = run_join(engine(), request);
  ASSERT_EQ(clean.total, 2 * kRows);
  bool happened = true;
  for (std::uint64_t nth = 0; happened; ++nth) {
    const std::int64_t before = live_allocations();
    const RunResult result = run_failing(request, nth, Failing::kOnlyThis, &happened);
    if (result.status.code != StatusCode::kOutOfMemory) {
      ASSERT_EQ(result.status.code, StatusCode::kEnd)
          << "allocation " << nth << ": " << result.status.message;
      ASSERT_EQ(result.total, 2 * kRows) << "allocation " << nth;
    }
    ASSERT_EQ(live_allocations(), before) << "leaked when allocation " << nth << " failed";
  }
}

TEST(AllocationHooks, fail_the_nth_allocation_and_no_other) {
  bool first = false, second = false, third = false;
  {
    const AllocationFailure failure(1, Failing::kOnlyThis);
    // Called by name, for a new-expression may be optimised away.
    void* const a = ::operator new(8, std::nothrow);
    void* const b = ::operator new (8, std::align_val_t{64}, std::nothrow);
    void* const c = ::operator new[](8, std::nothrow);
    first = a == nullptr;
    second = b == nullptr;
    third = c == nullptr;
    ::operator delete(a, std::nothrow);
    ::operator delete (b, std::align_val_t{64}, std::nothrow);
    ::operator delete[](c, std::nothrow);
    EXPECT_TRUE(failure.happened());
  }
  EXPECT_FALSE(first);
  EXPECT_TRUE(second);
  EXPECT_FALSE(third);
}

TEST(AllocationHooks, count_what_lives) {
  const std::int64_t before = live_allocations();
  void* const memory = ::operator new(100);
  const std::int64_t between = live_allocations();
  ::operator delete(memory);
  EXPECT_EQ(between, before + 1);
  EXPECT_EQ(live_allocations(), before);
}

}  // namespace
}  // namespace gpujoin::test
