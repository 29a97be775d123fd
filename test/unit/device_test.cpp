// What only a device has: memory that is counted on both sides of the bus, rows that travel, and
// others of its kind. Its failures are device_failure_test's matter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "boxes.h"
#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

class Device : public EngineTest {};
GPUJOIN_ON_DEVICES(Device);

TEST_P(Device, counts_of_rows_count_against_the_host_memory_limit) {
  constexpr std::uint64_t kRows = 1 << 17;
  std::vector<double> values(kRows);
  for (std::uint64_t row = 0; row < kRows; ++row) values[row] = static_cast<double>(row);
  const Points points(1, values);
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 0.5);
  ask(request, Output::kCountPerRow);
  const RunResult result = run_join(engine(), request);
  ASSERT_EQ(result.total, kRows);
  // Ids, counts in 64 bits, and as they came from the device in 32.
  EXPECT_GE(result.stats.memory_peak, kRows * (8 + 8 + 4));
  request.resources.memory_limit = kRows * 16;
  EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kMemoryLimit);
}

TEST_P(Device, says_how_many_threads_share_a_box) {
  Random random(601);
  const Points boxes(4, make_boxes(Shape::kUniform, random, 500, 2, 2));
  JoinRequest request = make_box_request(boxes, nullptr, Metric::kL2, 0);
  const auto threads = [&](BoxMethod method) {
    request.knobs.box_method = method;
    return run_join(engine(), request).stats.threads_per_point;
  };
  EXPECT_EQ(threads(BoxMethod::kLayeredGrid), 8u);
  EXPECT_EQ(threads(BoxMethod::kSortSweep), 32u);
  EXPECT_EQ(threads(BoxMethod::kNone), 1u);
}

TEST_P(Device, rows_on_their_way_can_be_interrupted) {
  const Points points(8, std::vector<double>(8 * 3'500'000, 1.0));  // 224 MB, four turns
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 0);
  ask(request, Output::kTotal);
  volatile int flag = 1;
  request.resources.interrupt = &flag;
  Join* join = nullptr;
  ASSERT_TRUE(engine().open(&request, &join).ok());
  ResultBatch batch{};
  for (int turn = 0; turn < 4; ++turn)
    EXPECT_EQ(engine().next_batch(join, &batch).code, StatusCode::kInterrupted);
  JoinStats stats{};
  engine().stats(join, &stats);
  EXPECT_EQ(stats.index_ms, 0) << "more was done than copying";
  engine().close(join);
}

TEST_P(Device, says_how_its_memory_is_used) {
  Random random(605);
  const Points points(2, make_values(Shape::kUniform, random, 100000, 2));
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 0.01);
  request.knobs.batch_pairs = 1 << 12;
  Join* join = nullptr;
  ASSERT_TRUE(engine().open(&request, &join).ok());
  ResultBatch batch{};
  ASSERT_TRUE(engine().next_batch(join, &batch).ok());
  DeviceMemory at_work{}, after{};
  engine().memory(&at_work, 1);
  engine().close(join);
  engine().memory(&after, 1);
  EXPECT_GE(at_work.joins, 100000u * 2 * sizeof(double));
  EXPECT_GE(at_work.used, at_work.joins + at_work.kept);
  EXPECT_EQ(after.joins, 0u);
  EXPECT_GT(after.used, 0u) << "the driver's";
  DeviceInfo info{};
  std::uint32_t count = 0;
  ASSERT_TRUE(engine().probe(&info, 1, &count).ok());
  EXPECT_LE(at_work.used, info.memory_bytes);
}

/// Runs a join in small batches, and expects its work to grow until all of it is done.
void expect_progress(const EngineTable& engine, JoinRequest request) {
  request.knobs.batch_pairs = 1 << 12;
  Join* join = nullptr;
  ASSERT_TRUE(engine.open(&request, &join).ok());
  ResultBatch batch{};
  JoinStats stats{};
  std::uint64_t done = 0;
  Status status;
  while ((status = engine.next_batch(join, &batch)).ok()) {
    engine.stats(join, &stats);
    EXPECT_GE(stats.work_done, done);
    EXPECT_LE(stats.work_done, stats.work);
    done = stats.work_done;
  }
  EXPECT_EQ(status.code, StatusCode::kEnd);
  engine.stats(join, &stats);
  EXPECT_GT(stats.work, 0u);
  EXPECT_EQ(stats.work_done, stats.work);
  engine.close(join);
}

TEST_P(Device, work_is_done_when_a_join_ends) {
  Random random(604);
  const Points few(3, make_values(Shape::kUniform, random, 30000, 3));
  const Points other(3, make_values(Shape::kUniform, random, 20000, 3));
  const Points many(40, make_values(Shape::kUniform, random, 3000, 40));
  for (const Points* right : {static_cast<const Points*>(nullptr), &other}) {
    JoinRequest request = make_request(few, right, Metric::kL2, 0.05);
    for (const Output::Kind output : {Output::kPairs, Output::kTotal, Output::kCountPerRow}) {
      ask(request, output);
      expect_progress(engine(), request);
    }
    expect_progress(engine(), request.asking(Output::nearest(5)));
  }
  JoinRequest tiles = make_request(many, nullptr, Metric::kL2, 2);
  tiles.knobs.index = IndexMethod::kTiles;
  for (const PairSelection pairs : {PairSelection::kAll, PairSelection::kUnordered}) {
    select(tiles, pairs);
    for (const Output::Kind output : {Output::kPairs, Output::kTotal, Output::kCountPerRow}) {
      ask(tiles, output);
      expect_progress(engine(), tiles);
    }
  }
  const Points boxes(4, make_boxes(Shape::kUniform, random, 3000, 2, 1));
  const Points other_boxes(4, make_boxes(Shape::kUniform, random, 2000, 2, 1));
  for (const BoxMethod method : kBoxMethods)
    for (const Points* right : {static_cast<const Points*>(nullptr), &other_boxes}) {
      JoinRequest request = make_box_request(boxes, right, Metric::kL2, 0);
      request.knobs.box_method = method;
      expect_progress(engine(), request);
    }
}

/// Needs two devices.
class TwoDevices : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    if (IsSkipped()) return;
    DeviceInfo found[2];
    std::uint32_t count = 0;
    if (!engine().probe(found, 2, &count).ok() || count < 2) GTEST_SKIP() << "one device only";
  }
};
GPUJOIN_ON_DEVICES(TwoDevices);

TEST_P(TwoDevices, a_join_stays_where_it_was_opened) {
  Random random(602);
  const Points first(2, make_values(Shape::kUniform, random, 2000, 2));
  const Points second(20, make_values(Shape::kClustered, random, 900, 20));
  const Oracle oracles[] = {Oracle(first, nullptr, Metric::kL2, 3),
                            Oracle(second, nullptr, Metric::kL2, 2)};
  JoinRequest requests[] = {make_request(first, nullptr, Metric::kL2, 3),
                            make_request(second, nullptr, Metric::kL2, 2)};
  requests[1].knobs.index = IndexMethod::kTiles;
  for (const int swapped : {0, 1}) {
    RunResult results[2];
    Join* joins[2] = {};
    for (int i = 0; i < 2; ++i) {
      requests[i].resources.devices.number[0] = i ^ swapped;
      requests[i].knobs.batch_pairs = 100;
      ASSERT_TRUE(engine().open(&requests[i], &joins[i]).ok());
    }
    for (int i = 0; results[0].status.ok() || results[1].status.ok(); i ^= 1) {
      if (!results[i].status.ok()) continue;
      ResultBatch batch{};
      results[i].status = engine().next_batch(joins[i], &batch);
      if (results[i].status.ok()) collect(requests[i], batch, &results[i]);
    }
    for (int i = 0; i < 2; ++i) {
      engine().stats(joins[i], &results[i].stats);
      engine().close(joins[i]);
      sort_result(requests[i], &results[i]);
      EXPECT_TRUE(matches_oracle(results[i], requests[i], oracles[i]));
    }
  }
}

TEST_P(TwoDevices, a_join_can_be_closed_while_another_device_works) {
  const Points many(1, std::vector<double>(100000, 1.0));
  JoinRequest request = make_request(many, nullptr, Metric::kL2, 0);
  request.knobs.batch_pairs = 1000;
  Join* joins[2] = {};
  ResultBatch batch{};
  for (int i = 0; i < 2; ++i) {
    request.resources.devices.number[0] = i;
    ASSERT_TRUE(engine().open(&request, &joins[i]).ok());
    ASSERT_TRUE(engine().next_batch(joins[i], &batch).ok());
  }
  engine().close(joins[0]);
  EXPECT_TRUE(engine().next_batch(joins[1], &batch).ok());
  engine().close(joins[1]);
}

/// Joins that two devices share; where there is one, it has two shares.
class SharedDevices : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    if (IsSkipped()) return;
    DeviceInfo found[2];
    ASSERT_TRUE(engine().probe(found, 2, &there_).ok());
  }

  JoinRequest share(JoinRequest request) const {
    request.knobs.share_devices = Switch::kOn;
    request.resources.devices.count = 2;
    request.resources.devices.number[1] = there_ > 1 ? 1 : 0;
    return request;
  }

  void expect_shared(const RunResult& result) const {
    ASSERT_EQ(result.stats.devices, 2u);
    EXPECT_EQ(result.stats.shares[1].device, there_ > 1 ? 1 : 0);
    EXPECT_EQ(result.stats.shares[0].candidates + result.stats.shares[1].candidates,
              result.stats.candidates);
    EXPECT_GT(result.stats.shares[0].candidates, 0u);
    EXPECT_GT(result.stats.shares[1].candidates, 0u);
  }

 private:
  std::uint32_t there_ = 0;
};
GPUJOIN_ON_DEVICES(SharedDevices);

TEST_P(SharedDevices, every_output_is_that_of_one_device) {
  Random random(611);
  for (const std::uint32_t dims : {2u, 20u})
    for (const Shape shape : {Shape::kUniform, Shape::kExponential, Shape::kClustered}) {
      const std::uint64_t rows = dims == 2 ? 6000 : 1500;
      const Points left(dims, make_values(shape, random, rows, dims));
      const Points right(dims, make_values(shape, random, rows / 2, dims));
      for (const IndexMethod index : {IndexMethod::kAuto, IndexMethod::kTiles, IndexMethod::kNone})
        for (const Points* const other : {static_cast<const Points*>(nullptr), &right}) {
          JoinRequest request = share(make_request(left, other, Metric::kL2, dims));
          request.knobs.index = index;
          const Oracle oracle(left, other, Metric::kL2, dims);
          EXPECT_TRUE(every_output_matches(engine(), request, oracle));
          ask(request, Output::kTotal);
          expect_shared(run_join(engine(), request));
        }
    }
}

TEST_P(SharedDevices, the_best_and_the_nearest_pairs_are_those_of_one_device) {
  Random random(612);
  const Points left(3, make_values(Shape::kClustered, random, 5000, 3));
  const Points right(3, make_values(Shape::kClustered, random, 4000, 3));
  const JoinRequest range = make_request(left, &right, Metric::kL2, 30);
  const Top top = {{ScoreFunction::kDistance, true, {1, 1}}, 500};
  for (const Output& output : {Output::top_pairs(top), Output::nearest(7)}) {
    const JoinRequest one = range.asking(output);
    RunResult expected = run_join(engine(), one), result = run_join(engine(), share(one));
    sort_result(one, &expected);
    sort_result(one, &result);
    ASSERT_EQ(result.status.code, StatusCode::kEnd);
    EXPECT_GT(result.pairs.size(), 0u);
    EXPECT_EQ(result.pairs, expected.pairs);
    if (output.kind() == Output::kNearest) expect_shared(result);
  }
}

TEST_P(SharedDevices, boxes_are_found_by_one_of_them) {
  Random random(613);
  const Points left(4, make_boxes(Shape::kUniform, random, 40000, 2, 2));
  const Points right(4, make_boxes(Shape::kUniform, random, 30000, 2, 2));
  for (const Points* const other : {static_cast<const Points*>(nullptr), &right})
    for (const BoxMethod method : {BoxMethod::kLayeredGrid, BoxMethod::kSortSweep}) {
      JoinRequest one = make_box_request(left, other, Metric::kL2, 0);
      one.knobs.box_method = method;
      RunResult expected = run_join(engine(), one), result = run_join(engine(), share(one));
      sort_result(one, &expected);
      sort_result(one, &result);
      ASSERT_EQ(result.status.code, StatusCode::kEnd);
      EXPECT_EQ(result.pairs, expected.pairs);
      expect_shared(result);
    }
}

TEST_P(SharedDevices, the_list_says_which_there_are) {
  const Points points(1, std::vector<double>(100, 1.0));
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 0);
  ask(request, Output::kTotal);
  request.resources.devices.count = 0;  // all
  EXPECT_EQ(run_join(engine(), request).total, 10000u);
  request = share(request);
  request.resources.devices.number[1] = 1000;
  Join* join = nullptr;
  EXPECT_EQ(engine().open(&request, &join).code, StatusCode::kUnavailable);
}

/// A join that is not worth it stays on one device.
TEST_P(SharedDevices, few_rows_are_not_shared) {
  const Points points(1, std::vector<double>(1000, 1.0));
  JoinRequest request = share(make_request(points, nullptr, Metric::kL2, 0));
  request.knobs.share_devices = Switch::kAuto;
  EXPECT_EQ(run_join(engine(), request).stats.devices, 0u);
}

/// Sizes for which a device of 80 GB or more is there, asked for by name.
class LargeDevice : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    if (IsSkipped()) return;
    if (std::getenv("GPUJOIN_LARGE_TESTS") == nullptr)
      GTEST_SKIP() << "takes minutes: test/device/run large";
  }
};
GPUJOIN_ON_DEVICES(LargeDevice);

TEST_P(LargeDevice, tiles_beyond_2_to_the_27th_row_match_brute_force) {
  // Directions all around, and some of them once more.
  constexpr std::int64_t kLarge = 140'000'000, kSmall = 128, kStep = kLarge / kSmall;
  constexpr double kEps = 1e-12;
  const auto direction = [](std::int64_t i) {
    const double angle = 2 * std::acos(-1.0) * static_cast<double>(i) / kLarge;
    return std::pair(std::cos(angle), std::sin(angle));
  };
  const auto points_of = [&](std::int64_t rows, std::int64_t step) {
    std::vector<double> values;
    values.reserve(2 * rows);
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto [x, y] = direction(i * step);
      values.insert(values.end(), {x, y});
    }
    return Points(2, values, ScalarType::kFloat32);
  };
  const Points large = points_of(kLarge, 1), small = points_of(kSmall, kStep);
  // Only directions next to one another can be within eps: 1,000 steps are a distance of 1e-9.
  std::vector<FoundPair> expected;
  std::vector<double> a(2), b(2);
  for (std::int64_t j = 0; j < kSmall; ++j) {
    for (std::int64_t i = j * kStep - 1000; i <= j * kStep + 1000; ++i) {
      const std::int64_t row = (i + kLarge) % kLarge;
      const double distance =
          definition_of_distance(Metric::kCosine, large.row(row, a), small.row(j, b), 2);
      if (distance <= kEps) expected.push_back({row, j, 0});
    }
  }
  std::sort(expected.begin(), expected.end());
  ASSERT_GT(expected.size(), 1000u);
  const RunResult result = run_join(engine(), make_request(large, &small, Metric::kCosine, kEps));
  EXPECT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
  EXPECT_EQ(result.pairs.size(), expected.size());
  EXPECT_TRUE(result.pairs == expected);
}

}  // namespace
}  // namespace gpujoin::test
