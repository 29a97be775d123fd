// The contract of engine/engine.h that is not about results: the table, the machine, invalid
// requests, and interruptions.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "allocation_hooks.h"
#include "boxes.h"
#include "engine/load_engine.h"
#include "engine_harness.h"
#include "points.h"
#include "small_parts.h"

namespace gpujoin::test {
namespace {

class EngineContract : public EngineTest {
 protected:
  EngineContract() : points_(2, {0, 0, 1, 1, 2, 2}) {}

  JoinRequest valid() const { return make_request(points_, nullptr, Metric::kL2, 1); }

  void expect_invalid(const JoinRequest& request, const char* mentions) {
    Join* join = reinterpret_cast<Join*>(&join);
    const std::int64_t before = live_allocations();
    const Status status = engine().open(&request, &join);
    EXPECT_EQ(status.code, StatusCode::kInvalidArgument) << mentions;
    EXPECT_NE(std::strstr(status.message, mentions), nullptr) << status.message;
    EXPECT_EQ(join, nullptr);
    expect_no_leak(engine(), before);
  }

  Points points_;
};
GPUJOIN_ON_EVERY_ENGINE(EngineContract);

TEST_P(EngineContract, the_table_is_complete) {
  EXPECT_TRUE(check_table(engine(), engine().name).ok());
  ASSERT_NE(engine().name, nullptr);
  EXPECT_STRNE(engine().name, "");
  EXPECT_NE(engine().probe, nullptr);
  EXPECT_NE(engine().open, nullptr);
  EXPECT_NE(engine().next_batch, nullptr);
  EXPECT_NE(engine().stats, nullptr);
  EXPECT_NE(engine().close, nullptr);
  EXPECT_NE(engine().keep, nullptr);
  EXPECT_NE(engine().forget, nullptr);
  EXPECT_NE(engine().kept, nullptr);
}

TEST_P(EngineContract, probe_describes_a_device) {
  DeviceInfo device;
  std::memset(&device, 0x7f, sizeof device);
  std::uint32_t count = 0;
  ASSERT_TRUE(engine().probe(&device, 1, &count).ok());
  EXPECT_GE(count, 1u);
  EXPECT_LT(strnlen(device.name, sizeof device.name), sizeof device.name);
  EXPECT_LT(strnlen(device.detail, sizeof device.detail), sizeof device.detail);
  EXPECT_STRNE(device.name, "");
  EXPECT_STRNE(device.detail, "");
  EXPECT_STREQ(device.unusable, "");
  EXPECT_GE(device.parallelism, 1u);
  EXPECT_GT(device.memory_bytes, std::uint64_t{1} << 20);
}

TEST_P(EngineContract, probe_writes_no_more_than_its_capacity) {
  std::uint32_t count = 0;
  EXPECT_TRUE(engine().probe(nullptr, 0, &count).ok());
}

TEST_P(EngineContract, eps_must_be_finite_and_not_negative) {
  for (const double eps : {kNan, kInf, -kInf, -1.0, -kDenormal})
    expect_invalid(make_request(points_, nullptr, Metric::kL2, eps), "eps");
}

TEST_P(EngineContract, dimensions_must_be_within_bounds) {
  Dataset data = points_.view();
  for (const std::uint32_t dims : {0u, kMaxDimensions + 1, ~0u}) {
    data.dims = dims;
    JoinRequest request = valid();
    set_sides(request, data, data);
    expect_invalid(request, "dimensions");
  }
  data.dims = 0;
  JoinRequest two = make_request(points_, &points_, Metric::kL2, 1);
  set_sides(two, points_.view(), data);
  expect_invalid(two, "right");
}

TEST_P(EngineContract, rows_must_be_numbered_in_32_bits) {
  Dataset data = points_.view();
  data.rows = kMaxRows + 1;
  JoinRequest request = valid();
  set_sides(request, data, data);
  expect_invalid(request, "rows");
}

TEST_P(EngineContract, both_sides_must_have_the_same_dimensions) {
  const Points other(3, {0, 0, 0});
  expect_invalid(make_request(points_, &other, Metric::kL2, 1), "dimensions");
}

TEST_P(EngineContract, both_sides_must_have_the_same_scalar_type) {
  const Points other(2, {0, 0}, ScalarType::kFloat32);
  expect_invalid(make_request(points_, &other, Metric::kL2, 1), "scalar");
}

TEST_P(EngineContract, a_join_after_an_invalid_one_works) {
  expect_invalid(make_request(points_, nullptr, Metric::kL2, -1), "eps");
  EXPECT_TRUE(matches_oracle(run_join(engine(), valid()), valid(),
                             Oracle(points_, nullptr, Metric::kL2, 1)));
}

TEST_P(EngineContract, joins_may_be_open_at_the_same_time) {
  Random random(121);
  const Points first(2, make_values(Shape::kUniform, random, 200, 2));
  const Points second(5, make_values(Shape::kLattice, random, 150, 5));
  JoinRequest requests[] = {make_request(first, nullptr, Metric::kL2, 20),
                            make_request(second, nullptr, Metric::kL1, 3)};
  RunResult results[2];
  Join* joins[2] = {};
  for (int i = 0; i < 2; ++i) {
    requests[i].knobs.batch_pairs = 100;
    ASSERT_TRUE(engine().open(&requests[i], &joins[i]).ok());
  }
  while (results[0].status.ok() || results[1].status.ok()) {
    for (int i = 0; i < 2; ++i) {
      if (!results[i].status.ok()) continue;
      ResultBatch batch{};
      results[i].status = engine().next_batch(joins[i], &batch);
      if (results[i].status.ok()) collect(requests[i], batch, &results[i]);
    }
  }
  for (int i = 0; i < 2; ++i) {
    engine().stats(joins[i], &results[i].stats);
    engine().close(joins[i]);
    sort_result(requests[i], &results[i]);
  }
  EXPECT_TRUE(matches_oracle(results[0], requests[0], Oracle(first, nullptr, Metric::kL2, 20)));
  EXPECT_TRUE(matches_oracle(results[1], requests[1], Oracle(second, nullptr, Metric::kL1, 3)));
}

/// collect() checks each batch against the one before it.
TEST_P(EngineContract, ids_of_a_batch_are_counted_and_stay_for_a_generation) {
  Random random(125);
  std::vector<double> scores(400);
  for (double& score : scores) score = random.unit();
  const Points points = Points(2, make_values(Shape::kUniform, random, 400, 2)).with_scores(scores);
  const Points boxes(4, make_boxes(Shape::kUniform, random, 300, 2, 5));
  const auto run = [&](const EngineTable& engine, JoinRequest request) {
    request.knobs.batch_pairs = 50;
    const RunResult result = run_join(engine, request);
    EXPECT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
    EXPECT_GT(result.batches, 1u) << describe(request);
    return result.ids.generation;
  };
  for (const Points* other : {static_cast<const Points*>(nullptr), &points}) {
    JoinRequest request = make_request(points, other, Metric::kL2, 20);
    for (const IndexMethod index : {IndexMethod::kGrid, IndexMethod::kNone, IndexMethod::kTiles}) {
      request.knobs.index = index;
      for (const Output::Kind output :
           {Output::kPairs, Output::kPairsWithDistances, Output::kCountPerRow}) {
        ask(request, output);
        EXPECT_EQ(run(engine(), request), 1u);
        EXPECT_GT(run(engine_of_parts(), request), 1u);
      }
    }
    for (const TopkMethod method : {TopkMethod::kThreshold, TopkMethod::kHeap, TopkMethod::kSort}) {
      request.knobs = {};
      request.knobs.topk_method = method;
      for (const ScoreFunction function : {ScoreFunction::kSum, ScoreFunction::kDistance})
        run(engine(), request.asking(Output::top_pairs({{function, true, {1, 1}}, 200})));
    }
    JoinRequest near =
        make_box_request(boxes, other != nullptr ? &boxes : nullptr, Metric::kL2, 10);
    for (const BoxMethod method : kBoxMethods) {
      near.knobs.box_method = method;
      EXPECT_EQ(run(engine(), near), 1u);
    }
  }
}

/// Brute force with nothing to deliver before the end.
class EngineInterrupts : public EngineTest {
 protected:
  JoinRequest long_work(const Points& points) {
    JoinRequest request = make_request(points, nullptr, Metric::kL2, 1);
    ask(request, Output::kTotal);
    request.resources.threads = 1;
    request.knobs.index = IndexMethod::kNone;
    request.resources.interrupt = &flag_;
    return request;
  }

  volatile int flag_ = 0;
};
GPUJOIN_ON_EVERY_ENGINE(EngineInterrupts);

TEST_P(EngineInterrupts, a_raised_flag_interrupts_and_the_join_can_be_closed) {
  const std::uint64_t rows = is_device(engine()) ? 1000000 : 300000;  // a second of work, or many
  const Points points(1, std::vector<double>(rows, 2.0));
  const JoinRequest request = long_work(points);
  const std::int64_t before = live_allocations();
  Join* join = nullptr;
  flag_ = 1;
  ASSERT_TRUE(engine().open(&request, &join).ok());
  ResultBatch batch{};
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(engine().next_batch(join, &batch).code, StatusCode::kInterrupted);
  engine().close(join);
  expect_no_leak(engine(), before);
}

TEST_P(EngineInterrupts, an_interrupted_join_goes_on_when_called_again) {
  constexpr std::uint64_t kRows = 50000;
  const Points points(1, std::vector<double>(kRows, 2.0));
  const JoinRequest request = long_work(points);
  Join* join = nullptr;
  flag_ = 1;
  ASSERT_TRUE(engine().open(&request, &join).ok());
  ResultBatch batch{};
  Status status = engine().next_batch(join, &batch);
  for (int i = 0; status.code == StatusCode::kInterrupted; ++i) {
    if (i == 3) flag_ = 0;
    ASSERT_LE(i, 3) << "interrupted with the flag down";
    status = engine().next_batch(join, &batch);
  }
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(batch.pair_count, kRows * kRows);
  EXPECT_EQ(engine().next_batch(join, &batch).code, StatusCode::kEnd);
  engine().close(join);
}

/// The threads of this process.
std::set<std::string> threads() {
  std::set<std::string> ids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    ids.insert(entry.path().filename());
  return ids;
}

TEST_P(EngineInterrupts, threads_of_an_engine_block_signals) {
  const Points points(1, std::vector<double>(300000, 2.0));
  JoinRequest request = long_work(points);
  request.resources.threads = 3;
  const std::set<std::string> before = threads();
  Join* join = nullptr;
  ASSERT_TRUE(engine().open(&request, &join).ok());
  int checked = 0;
  for (const std::string& id : threads()) {
    if (before.contains(id)) continue;
    std::ifstream status("/proc/self/task/" + id + "/status");
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("SigBlk:")) continue;
      const std::uint64_t blocked = std::stoull(line.substr(7), nullptr, 16);
      for (const int signal : {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD})
        EXPECT_TRUE(blocked >> (signal - 1) & 1) << "signal " << signal;
      ++checked;
    }
  }
  engine().close(join);
  if (is_device(engine())) return;  // works in the caller's thread, its driver in some of its own
  EXPECT_GE(checked, 1) << "the engine works in no thread of its own";
}

/// Signals that raise a flag every 70 microseconds of real time, as a server's signal handlers do.
class RaisingSignals {
 public:
  RaisingSignals() {
    struct sigaction action {};
    action.sa_handler = [](int) { flag = 1; };
    sigaction(SIGALRM, &action, &before_);
    const itimerval often{{0, 70}, {0, 70}};
    setitimer(ITIMER_REAL, &often, nullptr);
  }
  ~RaisingSignals() {
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before_, nullptr);
  }

  static inline volatile int flag = 0;

 private:
  struct sigaction before_ {};
};

TEST_P(EngineInterrupts, a_signal_interrupts_work_under_way) {
  const std::uint64_t rows = is_device(engine()) ? 1000000 : 300000;  // a second of work, or many
  const Points points(1, std::vector<double>(rows, 2.0));
  JoinRequest request = long_work(points);
  request.resources.interrupt = &RaisingSignals::flag;
  RaisingSignals::flag = 0;
  Join* join = nullptr;
  ASSERT_TRUE(engine().open(&request, &join).ok());
  {
    const RaisingSignals signals;
    ResultBatch batch{};
    EXPECT_EQ(engine().next_batch(join, &batch).code, StatusCode::kInterrupted);
  }
  engine().close(join);
}

/// A signal that raises a flag after some time.
class OneSignal {
 public:
  explicit OneSignal(int milliseconds) {
    flag = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { flag = 1; };
    sigaction(SIGALRM, &action, &before_);
    const itimerval once{{0, 0}, {0, milliseconds * 1000}};
    setitimer(ITIMER_REAL, &once, nullptr);
  }
  ~OneSignal() {
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before_, nullptr);
  }

  static inline volatile int flag = 0;

 private:
  struct sigaction before_ {};
};

/// Opens a join of many seconds and pulls until a signal that comes after 100 ms has an effect.
void expect_one_signal_interrupts(const EngineTable& engine, JoinRequest request) {
  request.resources.interrupt = &OneSignal::flag;
  Join* join = nullptr;
  const OneSignal signal(100);
  ASSERT_TRUE(engine.open(&request, &join).ok());
  ResultBatch batch{};
  EXPECT_EQ(engine.next_batch(join, &batch).code, StatusCode::kInterrupted);
  EXPECT_EQ(engine.next_batch(join, &batch).code, StatusCode::kInterrupted) << "the flag is up";
  engine.close(join);
}

TEST_P(EngineInterrupts, a_signal_interrupts_counting_by_tiles) {
  // A tenth of all pairs are within eps, so that each step of the work is short.
  const std::uint64_t rows = is_device(engine()) ? 1'000'000 : 200'000;
  Random random(124);
  std::vector<double> values(16 * rows);
  for (double& value : values) value = random.unit();
  const Points points(16, values, ScalarType::kFloat32);
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 1.29);
  ask(request, Output::kTotal);
  request.knobs.index = IndexMethod::kTiles;
  expect_one_signal_interrupts(engine(), request);
}

TEST_P(EngineInterrupts, a_signal_interrupts_the_search_for_the_best_pairs) {
  const std::uint64_t rows = is_device(engine()) ? 2'000'000 : 100'000;
  const Points points =
      Points(2, std::vector<double>(2 * rows, 1.0)).with_scores(std::vector<double>(rows, 1.0));
  for (const TopkMethod method : {TopkMethod::kThreshold, TopkMethod::kHeap, TopkMethod::kSort}) {
    JoinRequest request = make_request(points, nullptr, Metric::kL2, 1);
    request = request.asking(Output::top_pairs({{ScoreFunction::kSum, false, {1, 1}}, 16}));
    request.knobs.topk_method = method;
    expect_one_signal_interrupts(engine(), request);
  }
}

TEST_P(EngineInterrupts, flags_raised_by_signals_at_any_moment_lose_nothing) {
  Random random(122);
  const Points points(2, make_values(Shape::kClustered, random, 1100, 2));
  const Oracle oracle(points, nullptr, Metric::kL2, 0.1);
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 0.1);
  request.resources.interrupt = &RaisingSignals::flag;
  for (int run = 0; run < 60; ++run) {
    request.knobs.batch_pairs = run % 2 ? 20 : 0;
    request.knobs.index = run % 3 ? IndexMethod::kGrid : IndexMethod::kNone;
    const RaisingSignals signals;
    EXPECT_TRUE(
        matches_oracle(run_join(engine(), request, &RaisingSignals::flag), request, oracle));
  }
}

TEST_P(EngineInterrupts, flags_raised_by_signals_lose_no_top_pairs) {
  Random random(123);
  std::vector<double> scores(1100);
  for (double& score : scores) score = random.unit();
  const Points points =
      Points(2, make_values(Shape::kClustered, random, 1100, 2)).with_scores(scores);
  const Oracle oracle(points, nullptr, Metric::kL2, 0.1);
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 0.1);
  request.resources.interrupt = &RaisingSignals::flag;
  for (int run = 0; run < 60; ++run) {
    request.knobs.topk_method = run % 2 ? TopkMethod::kThreshold : TopkMethod::kSort;
    const ScoreFunction function = run % 3 ? ScoreFunction::kSum : ScoreFunction::kDistance;
    request = request.asking(Output::top_pairs({{function, true, {1, 1}}, 90}));
    const RaisingSignals signals;
    EXPECT_TRUE(
        matches_oracle(run_join(engine(), request, &RaisingSignals::flag), request, oracle));
  }
}

}  // namespace
}  // namespace gpujoin::test
