// What a join tells of its work while it runs: plans of tasks, and how much of them is done.

#include "cpu/walk/work_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine_harness.h"
#include "points.h"

namespace gpujoin::cpu {
namespace {

using test::Points;

TEST(WorkProfile, ranges_beside_each_other_cost_together_what_they_cost_alone) {
  for (const std::uint64_t items : {0, 1, 15, 16, 17, 1000, 123457}) {
    const WorkProfile profile(items, [](std::uint64_t item) { return item * item % 1009; });
    const std::uint64_t all = profile.of(0, items);
    EXPECT_GE(all, items);
    for (std::uint64_t stretch : {1, 7, 64, 1000}) {
      std::uint64_t sum = 0;
      for (std::uint64_t first = 0; first < items; first += stretch)
        sum += profile.of(first, std::min(items, first + stretch));
      EXPECT_EQ(sum, all) << items << " items by " << stretch;
    }
  }
}

TEST(WorkProfile, half_a_walk_costs_what_is_left_at_each_item) {
  constexpr std::uint64_t kItems = 1 << 20;
  std::uint64_t looks = 0;
  const WorkProfile profile(kItems, [&](std::uint64_t item) {
    ++looks;
    return kItems - item;
  });
  EXPECT_LE(looks, kItems / 16);
  const double all = static_cast<double>(profile.of(0, kItems));
  EXPECT_NEAR(all, 0x1p39, 0x1p39 * 0.001);
  EXPECT_NEAR(static_cast<double>(profile.of(0, kItems / 2)) / all, 0.75, 0.001);
}

TEST(WorkProfile, looks_at_few_items_of_little_work) {
  std::uint64_t looks = 0;
  const WorkProfile profile(100000, [&](std::uint64_t) { return ++looks, 10; });
  EXPECT_LE(looks, 70u);
  EXPECT_EQ(profile.of(0, 100000), 1000000u);
}

/// What the statistics of a join said after each of its batches.
struct Watched {
  std::vector<JoinStats> seen;
  JoinStats end{};
};

Watched watch(const JoinRequest& request) {
  const EngineTable& engine = *cpu_engine();
  Watched watched;
  Join* join = nullptr;
  EXPECT_TRUE(engine.open(&request, &join).ok());
  ResultBatch batch;
  Status status;
  while ((status = engine.next_batch(join, &batch)).ok()) {
    JoinStats stats{};
    engine.stats(join, &stats);
    if (stats.work > 0) watched.seen.push_back(stats);
  }
  EXPECT_EQ(status.code, StatusCode::kEnd);
  engine.stats(join, &watched.end);
  engine.close(join);
  return watched;
}

/// Exponential values: many near 0, few far away.
Points skewed_points(std::uint32_t dims, std::size_t rows, std::uint64_t seed) {
  test::Random random(seed);
  std::vector<double> values(dims * rows);
  for (double& x : values) x = random.exponential();
  return Points(dims, values);
}

struct Method {
  IndexMethod index;
  std::uint32_t dims;
  double eps;
};

TEST(WorkOfJoins, is_done_as_candidates_are_compared) {
  constexpr double kShare = 0.1;
  const std::size_t rows = test::kSanitized ? 4000 : 12000;
  for (const Method& method :
       {Method{IndexMethod::kGrid, 2, 0.5}, Method{IndexMethod::kNone, 3, 0.3},
        Method{IndexMethod::kTiles, 16, 3}}) {
    for (const bool self_join : {true, false}) {
      SCOPED_TRACE(testing::Message() << method.dims << "-D" << (self_join ? ", self-join" : ""));
      const Points left = skewed_points(method.dims, rows, 1);
      const Points right = skewed_points(method.dims, rows, 2);
      JoinRequest request =
          test::make_request(left, self_join ? nullptr : &right, Metric::kL2, method.eps);
      request.resources.threads = 1;
      request.knobs.index = method.index;
      request.knobs.batch_pairs = 1000;  // so that the walk waits for who watches
      const Watched watched = watch(request);
      ASSERT_EQ(watched.end.strategy.index, method.index);
      ASSERT_GT(watched.seen.size(), 50u);
      EXPECT_EQ(watched.end.work_done, watched.end.work);
      std::uint64_t before = 0;
      for (const JoinStats& stats : watched.seen) {
        EXPECT_EQ(stats.work, watched.end.work);
        EXPECT_GE(stats.work_done, before);
        EXPECT_LE(stats.work_done, stats.work);
        before = stats.work_done;
        const double compared =
            static_cast<double>(stats.candidates) / static_cast<double>(watched.end.candidates);
        EXPECT_NEAR(static_cast<double>(stats.work_done) / static_cast<double>(stats.work),
                    compared, kShare);
      }
    }
  }
}

TEST(WorkOfJoins, in_parts_is_that_of_all_parts) {
  const Points points = skewed_points(2, 20000, 3);
  JoinRequest request = test::make_request(points, nullptr, Metric::kL2, 0.05);
  request.resources.threads = 1;
  request.resources.memory_limit = 1 << 20;
  request.knobs.batch_pairs = 1000;
  const Watched watched = watch(request);
  ASSERT_GT(watched.end.parts, 3u);
  std::uint64_t before = 0;
  for (const JoinStats& stats : watched.seen) {
    EXPECT_EQ(stats.work, watched.end.work);
    EXPECT_GE(stats.work_done, before);
    before = stats.work_done;
  }
  EXPECT_LT(watched.seen.front().work_done, watched.end.work / 2);
  EXPECT_EQ(watched.end.work_done, watched.end.work);
}

TEST(WorkOfJoins, of_several_walks_is_that_of_all) {
  const Points points = skewed_points(2, 30000, 4);
  JoinRequest request = test::make_request(points, nullptr, Metric::kL2, 0.02);
  request = request.asking(Output::clusters(5, BorderRule::kNearest));
  const Watched watched = watch(request);
  EXPECT_EQ(watched.end.work, 3u * 30000);
  EXPECT_EQ(watched.end.work_done, watched.end.work);
}

/// Calls that end for want of patience lose nothing, of joins that are made of joins, too. Where
/// batches come soon no call ends so; a total comes at the end alone.
TEST(WorkOfJoins, can_be_looked_at_by_who_waits) {
  std::uint64_t interruptions = 0;
  const Points points = skewed_points(3, test::kSanitized ? 5000 : 20000, 5);
  for (const Output& output :
       {Output::total(), Output::count_per_row(), Output::duplicates(true)}) {
    SCOPED_TRACE(static_cast<int>(output.kind()));
    JoinRequest request = test::make_request(points, nullptr, Metric::kL2, 0.5).asking(output);
    request.resources.threads = 1;
    request.knobs.index = IndexMethod::kNone;
    const test::RunResult expected = test::run_join(*cpu_engine(), request);
    ASSERT_EQ(expected.status.code, StatusCode::kEnd) << expected.status.message;
    request.resources.patience_ms = 1;
    volatile int never = 0;
    const test::RunResult looked = test::run_join(*cpu_engine(), request, &never);
    EXPECT_EQ(looked.status.code, StatusCode::kEnd);
    interruptions += looked.interruptions;
    EXPECT_EQ(looked.total, expected.total);
    EXPECT_EQ(looked.pairs, expected.pairs);
    EXPECT_EQ(looked.counts, expected.counts);
  }
  EXPECT_GE(interruptions, 1u);
}

}  // namespace
}  // namespace gpujoin::cpu
