// Every call of the CUDA runtime that an engine makes fails once: the join must say so and leave
// nothing behind, and the next join must work. For engines that were linked with
// test/device/faults.cu.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "boxes.h"
#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

/// What an engine with faults exports; see test/device/faults.cu.
struct Faults {
  void (*fail_call)(std::int64_t);
  bool (*call_failed)();
  std::int64_t (*live_objects)();
  void (*break_device)();
  void (*spoil_tensor_sums)(bool);
  void* (*current_context)();
  void (*part_devices)(bool);
  void (*limit_shared_memory)(int);
  void (*pretend_capability)(int);
  void (*limit_device_memory)(std::int64_t);
  std::uint64_t (*reserved_device_bytes)();
};

Faults find_faults() {
  Faults faults{};
  const char* const path = std::getenv("GPUJOIN_CUDA_ENGINE");
  void* const object = path != nullptr ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (object == nullptr) return faults;
  const auto find = [&](auto*& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(object, name));
  };
  find(faults.fail_call, "gpujoin_fail_cuda_call");
  find(faults.call_failed, "gpujoin_cuda_call_failed");
  find(faults.live_objects, "gpujoin_live_cuda_objects");
  find(faults.break_device, "gpujoin_break_device");
  find(faults.spoil_tensor_sums, "gpujoin_spoil_tensor_sums");
  find(faults.current_context, "gpujoin_current_context");
  find(faults.part_devices, "gpujoin_part_devices");
  find(faults.limit_shared_memory, "gpujoin_limit_shared_memory");
  find(faults.pretend_capability, "gpujoin_pretend_capability");
  find(faults.limit_device_memory, "gpujoin_limit_device_memory");
  find(faults.reserved_device_bytes, "gpujoin_reserved_device_bytes");
  return faults;
}

const Faults& faults() {
  static const Faults found = find_faults();
  return found;
}

/// Null alone where there is none.
std::vector<const EngineTable*> engines_with_faults() {
  if (faults().fail_call == nullptr) return {nullptr};
  return devices();
}

class DeviceFailures : public EngineTest {
 protected:
  void expect_survival(const JoinRequest& request, const Oracle& oracle) {
    ASSERT_TRUE(matches_oracle(run_join(engine(), request), request, oracle));
    const std::int64_t live = faults().live_objects();
    std::uint64_t survived = 0, other = 0;
    for (std::int64_t nth = 0;; ++nth) {
      faults().fail_call(nth);
      const RunResult result = run_join(engine(), request);
      const bool failed = faults().call_failed();
      faults().fail_call(-1);
      ASSERT_EQ(faults().live_objects(), live) << "left behind when call " << nth << " failed";
      if (!failed) {
        ASSERT_TRUE(matches_oracle(result, request, oracle));
        break;
      }
      // An allocation that was tried again with less, or a call that did not matter any more.
      if (result.status.code == StatusCode::kEnd) {
        ASSERT_TRUE(matches_oracle(result, request, oracle)) << "call " << nth;
        ++survived;
        continue;
      }
      if (result.status.code != StatusCode::kOutOfMemory) {
        ASSERT_EQ(result.status.code, StatusCode::kDeviceFailure) << "call " << nth;
        ++other;
      }
      EXPECT_STRNE(result.status.hint, "");
      ASSERT_TRUE(matches_oracle(run_join(engine(), request), request, oracle))
          << "the join after call " << nth << " failed";
    }
    EXPECT_GT(survived, 10u);
    EXPECT_GT(other, 10u);
  }

  /// Shared by the first two devices, or by two shares of the only one.
  void share(JoinRequest* request) {
    std::uint32_t count = 0;
    DeviceInfo device{};
    ASSERT_TRUE(engine().probe(&device, 1, &count).ok());
    request->knobs.share_devices = Switch::kOn;
    request->resources.devices.count = 2;
    request->resources.devices.number[1] = count > 1 ? 1 : 0;
  }

  /// For a join whose batches come at its end: one share goes on where the other fails.
  void expect_left_to_the_other(JoinRequest request, const Oracle& oracle) {
    share(&request);
    const RunResult whole = run_join(engine(), request);
    ASSERT_TRUE(matches_oracle(whole, request, oracle));
    ASSERT_EQ(whole.stats.devices, 2u);
    const std::int64_t live = faults().live_objects();
    std::uint64_t left_out = 0, errors = 0;
    for (std::int64_t nth = 0;; ++nth) {
      faults().fail_call(nth);
      const RunResult result = run_join(engine(), request);
      const bool failed = faults().call_failed();
      faults().fail_call(-1);
      ASSERT_EQ(faults().live_objects(), live) << "left behind when call " << nth << " failed";
      if (!failed) break;
      if (result.status.code != StatusCode::kEnd) {
        ++errors;
        continue;
      }
      ASSERT_TRUE(matches_oracle(result, request, oracle)) << "call " << nth;
      if (result.stats.devices < 2) ++left_out;
    }
    EXPECT_GT(left_out, 50u);
    EXPECT_LT(errors, 10u) << "none but those of looking for devices";
  }
};
INSTANTIATE_TEST_SUITE_P(Engine, DeviceFailures, testing::ValuesIn(engines_with_faults()),
                         engine_name);

TEST_P(DeviceFailures, nearest_neighbors) {
  Random random(190);
  for (const std::uint32_t dims : {2u, 20u}) {
    const Points points(dims, make_values(Shape::kUniform, random, 300, dims));
    const Oracle oracle(points, nullptr, Metric::kL2, 1e300);
    expect_survival(make_request(points, nullptr, Metric::kL2, 1e300).asking(Output::nearest(4)),
                    oracle);
  }
}

TEST_P(DeviceFailures, distances_of_a_self_join) {
  Random random(501);
  const Points points(3, make_values(Shape::kClustered, random, 900, 3));
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 0.1);
  ask(request, Output::kPairsWithDistances);
  request.knobs.work_order = WorkOrder::kQueue;
  expect_survival(request, Oracle(points, nullptr, Metric::kL2, 0.1));
}

TEST_P(DeviceFailures, tiles_of_a_self_join) {
  Random random(505);
  const Points points(20, make_values(Shape::kClustered, random, 700, 20));
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 1.5);
  ask(request, Output::kPairsWithDistances);
  request.knobs.index = IndexMethod::kTiles;
  expect_survival(request, Oracle(points, nullptr, Metric::kL2, 1.5));
}

TEST_P(DeviceFailures, directions_of_a_join_of_two) {
  Random random(506);
  const Points left(9, make_values(Shape::kClustered, random, 500, 9));
  const Points right(9, make_values(Shape::kClustered, random, 300, 9));
  JoinRequest request = make_request(left, &right, Metric::kCosine, 0.01);
  expect_survival(request, Oracle(left, &right, Metric::kCosine, 0.01));
}

TEST_P(DeviceFailures, reference_points_of_a_self_join) {
  Random random(507);
  const Points points(12, make_values(Shape::kExponential, random, 600, 12));
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 9);
  request.knobs.index = IndexMethod::kReferencePoints;
  expect_survival(request, Oracle(points, nullptr, Metric::kL2, 9));
}

TEST_P(DeviceFailures, points_that_several_threads_upload) {
  Random random(509);
  const Points points(1200, make_values(Shape::kClustered, random, 1000, 1200));  // 9.6 MB
  expect_survival(make_request(points, nullptr, Metric::kL2, 12),
                  Oracle(points, nullptr, Metric::kL2, 12));
}

TEST_P(DeviceFailures, counts_of_a_join_of_two) {
  Random random(502);
  const Points left(2, make_values(Shape::kUniform, random, 400, 2));
  const Points right(2, make_values(Shape::kUniform, random, 300, 2));
  JoinRequest request = make_request(left, &right, Metric::kL2, 5);
  ask(request, Output::kCountPerRow);
  expect_survival(request, Oracle(left, &right, Metric::kL2, 5));
}

TEST_P(DeviceFailures, pairs_of_a_join_in_parts) {
  Random random(503);
  const Points points(2, make_values(Shape::kUniform, random, 1500, 2));
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 3);
  request.resources.device_memory_limit = (std::uint64_t{2} << 20) + (1 << 17);
  expect_survival(request, Oracle(points, nullptr, Metric::kL2, 3));
}

/// As where another program takes memory after the join has chosen its size.
TEST_P(DeviceFailures,
       joins_of_any_kind_find_the_same_rows_in_less_memory_than_there_seemed_to_be) {
  Random random(517);
  const std::uint64_t rows = 200000;
  const Points flat(2, make_values(Shape::kUniform, random, rows, 2));
  const Points other(2, make_values(Shape::kUniform, random, rows, 2));
  const Points deep(20, make_values(Shape::kClustered, random, 4000, 20));
  std::vector<JoinRequest> requests;
  for (const Output::Kind output : {Output::kPairs, Output::kCountPerRow, Output::kTotal}) {
    for (const Points* const right : {static_cast<const Points*>(nullptr), &other}) {
      requests.push_back(make_request(flat, right, Metric::kL2, 0.2));
      ask(requests.back(), output);
    }
    requests.push_back(make_request(deep, nullptr, Metric::kL2, 1.5));
    ask(requests.back(), output);
  }
  requests.push_back(make_request(flat, nullptr, Metric::kL2, 0.2).asking(Output::clusters(5)));
  for (const JoinRequest& request : requests) {
    SCOPED_TRACE(describe(request));
    const RunResult whole = run_join(engine(), request);
    ASSERT_EQ(whole.status.code, StatusCode::kEnd) << whole.status.message;
    const auto peak = static_cast<std::int64_t>(whole.stats.device_memory_peak);
    for (const std::int64_t limit : {peak - 1, peak / 2}) {
      const std::int64_t live = faults().live_objects();
      faults().limit_device_memory(limit);
      const RunResult less = run_join(engine(), request);
      const bool failed = faults().call_failed();
      faults().limit_device_memory(0);
      EXPECT_TRUE(failed) << limit;
      ASSERT_EQ(faults().live_objects(), live) << limit;
      ASSERT_EQ(less.status.code, StatusCode::kEnd) << limit << ": " << less.status.message;
      EXPECT_EQ(less.total, whole.total) << limit;
      EXPECT_EQ(less.pairs, whole.pairs) << limit;
      EXPECT_EQ(less.counts, whole.counts) << limit;
    }
  }
}

TEST_P(DeviceFailures, a_device_without_memory_is_an_error_that_says_so) {
  Random random(518);
  const Points points(2, make_values(Shape::kUniform, random, 3000, 2));
  const JoinRequest request = make_request(points, nullptr, Metric::kL2, 1);
  faults().limit_device_memory(1);
  const RunResult result = run_join(engine(), request);
  faults().limit_device_memory(0);
  EXPECT_EQ(result.status.code, StatusCode::kOutOfMemory) << result.status.message;
  EXPECT_NE(std::string(result.status.message).find("the device is out of memory"),
            std::string::npos)
      << result.status.message;
  EXPECT_STRNE(result.status.hint, "");
  EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kEnd);
}

/// kKeptDeviceBytes may stay, for the next join.
TEST_P(DeviceFailures, a_join_that_cannot_be_opened_gives_its_memory_back) {
  constexpr std::uint64_t kMegabyte = 1 << 20, kRows = 300000;
  const Points points(100, std::vector<double>(kRows * 100, 1.0));  // 240 MB
  const Points other(100, std::vector<double>(kRows * 100, 2.0));
  const JoinRequest request = make_request(points, &other, Metric::kL2, 1);
  int failures = 0;
  for (std::int64_t nth = 0;; ++nth) {
    Join* join = nullptr;
    faults().fail_call(nth);
    const Status status = engine().open(&request, &join);
    const bool failed = faults().call_failed();
    faults().fail_call(-1);
    if (join != nullptr) engine().close(join);
    if (!failed) break;
    if (status.ok()) continue;
    ++failures;
    ASSERT_LE(faults().reserved_device_bytes(), 300 * kMegabyte) << "call " << nth;
  }
  EXPECT_GT(failures, 3);
}

/// What one share cannot do, the other does, as long as nothing was delivered.
TEST_P(DeviceFailures, a_share_of_a_join_is_left_to_the_other) {
  Random random(511);
  const Points points(2, make_values(Shape::kUniform, random, 2000, 2));
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 3);
  ask(request, Output::kCountPerRow);
  expect_left_to_the_other(request, Oracle(points, nullptr, Metric::kL2, 3));
}

TEST_P(DeviceFailures, devices_that_no_bus_connects_share_a_join) {
  Random random(515);
  const Points points(2, make_values(Shape::kUniform, random, 2000, 2));
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 3);
  share(&request);
  faults().part_devices(true);
  const RunResult result = run_join(engine(), request);
  faults().part_devices(false);
  EXPECT_TRUE(matches_oracle(result, request, Oracle(points, nullptr, Metric::kL2, 3)));
  EXPECT_EQ(result.stats.devices, 2u);
}

/// A share that fails before it has taken anything loses nothing, and what others have delivered is
/// not delivered again.
TEST_P(DeviceFailures, pairs_of_shares_come_once_or_there_is_an_error) {
  Random random(514);
  const Points points(2, make_values(Shape::kUniform, random, 2000, 2));
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 3);
  share(&request);
  request.knobs.batch_pairs = 1000;
  const Oracle oracle(points, nullptr, Metric::kL2, 3);
  ASSERT_TRUE(matches_oracle(run_join(engine(), request), request, oracle));
  std::uint64_t left_out = 0, errors = 0;
  for (std::int64_t nth = 0;; ++nth) {
    faults().fail_call(nth);
    const RunResult result = run_join(engine(), request);
    const bool failed = faults().call_failed();
    faults().fail_call(-1);
    if (!failed) break;
    errors += result.status.code != StatusCode::kEnd;
    if (result.status.code != StatusCode::kEnd) continue;
    ASSERT_TRUE(matches_oracle(result, request, oracle)) << "call " << nth;
    left_out += result.batches > 1 && result.stats.devices < 2;
  }
  EXPECT_GT(left_out, 10u);
  EXPECT_GT(errors, 0u);
}

TEST_P(DeviceFailures, clusters_of_many_columns) {
  Random random(512);
  const Points points(20, make_values(Shape::kClustered, random, 700, 20));
  for (const Metric metric : {Metric::kL2, Metric::kCosine}) {
    const double eps = metric == Metric::kL2 ? 1.5 : 0.004;
    expect_survival(make_request(points, nullptr, metric, eps).asking(Output::clusters(9)),
                    Oracle(points, nullptr, metric, eps));
  }
}

TEST_P(DeviceFailures, a_share_of_clusters_is_left_to_the_other) {
  Random random(513);
  const Points points(20, make_values(Shape::kClustered, random, 700, 20));
  const Oracle oracle(points, nullptr, Metric::kL2, 1.5);
  for (const std::uint64_t min_points : {1u, 9u})
    expect_left_to_the_other(
        make_request(points, nullptr, Metric::kL2, 1.5).asking(Output::clusters(min_points)),
        oracle);
}

TEST_P(DeviceFailures, boxes_of_two_sides_by_every_method) {
  Random random(508);
  const Points left(4, make_boxes(Shape::kUniform, random, 500, 2, 2));
  const Points right(4, make_boxes(Shape::kUniform, random, 900, 2, 2));
  for (const BoxMethod method :
       {BoxMethod::kLayeredGrid, BoxMethod::kSortSweep, BoxMethod::kNone}) {
    JoinRequest request = make_box_request(left, &right, Metric::kL2, 0);
    request.knobs.box_method = method;
    request.resources.device_memory_limit = std::uint64_t{1} << 17;  // chunks and slices
    expect_survival(request, Oracle::of_boxes(left, &right, Metric::kL2, 0));
  }
}

TEST_P(DeviceFailures, tensor_cores_that_sum_otherwise_are_not_used) {
  Random random(510);
  const Points points(20, make_values(Shape::kClustered, random, 700, 20));
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 1.5);
  request.knobs.index = IndexMethod::kTiles;
  const Oracle oracle(points, nullptr, Metric::kL2, 1.5);
  const JoinRequest cosine = make_request(points, nullptr, Metric::kCosine, 0.01);
  faults().spoil_tensor_sums(true);
  const RunResult without = run_join(engine(), request);
  const RunResult refused = run_join(engine(), cosine);
  faults().spoil_tensor_sums(false);
  EXPECT_TRUE(matches_oracle(without, request, oracle));
  EXPECT_EQ(without.stats.strategy.index, IndexMethod::kGrid);
  EXPECT_EQ(refused.status.code, StatusCode::kUnavailable);
  EXPECT_NE(std::string(refused.status.message).find("tensor cores"), std::string::npos);
  EXPECT_STRNE(refused.status.hint, "");
  const RunResult with = run_join(engine(), request);
  EXPECT_TRUE(matches_oracle(with, request, oracle));
  EXPECT_EQ(with.stats.strategy.index, IndexMethod::kTiles);
  EXPECT_TRUE(matches_oracle(run_join(engine(), cosine), cosine,
                             Oracle(points, nullptr, Metric::kCosine, 0.01)));
}

/// GeForce cards, L4 and L40S lend 99 KB to a thread block, A100 163 KB, others 64 KB.
TEST_P(DeviceFailures, small_shared_memory_serves_nearest_rows_and_tiles) {
  Random random(516);
  for (const std::uint32_t dims : {20u, 64u, 190u, 256u, 300u}) {
    const Points points(dims, make_values(Shape::kUniform, random, 700, dims));
    const double eps = 39.5 * std::sqrt(dims);
    const Oracle oracle(points, nullptr, Metric::kL2, eps),
        all(points, nullptr, Metric::kL2, 1e300);
    JoinRequest tiles = make_request(points, nullptr, Metric::kL2, eps);
    tiles.knobs.index = IndexMethod::kTiles;
    JoinRequest counts = tiles;
    ask(counts, Output::kCountPerRow);
    JoinRequest nearest =
        make_request(points, nullptr, Metric::kL2, 1e300).asking(Output::nearest(4));
    nearest.knobs.index = IndexMethod::kTiles;
    for (const int kb : {64, 99, 163, 0}) {
      SCOPED_TRACE(std::to_string(dims) + " dimensions, " + std::to_string(kb) + " KB");
      faults().limit_shared_memory(kb);
      const RunResult results[] = {run_join(engine(), tiles), run_join(engine(), counts),
                                   run_join(engine(), nearest)};
      faults().limit_shared_memory(0);
      EXPECT_TRUE(matches_oracle(results[0], tiles, oracle));
      EXPECT_TRUE(matches_oracle(results[1], counts, oracle));
      EXPECT_TRUE(matches_oracle(results[2], nearest, all));
    }
  }
}

TEST_P(DeviceFailures, devices_without_code_are_named_and_not_used) {
  const Points points(2, std::vector<double>(2 * 100, 1.0));
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 1);
  const auto expect_no_code = [](const Status& status) {
    EXPECT_EQ(status.code, StatusCode::kUnavailable) << status.message;
    EXPECT_NE(std::string(status.message).find("no code for this device"), std::string::npos)
        << status.message;
    EXPECT_NE(std::string(status.message).find("7.5"), std::string::npos) << status.message;
  };
  DeviceInfo device{};
  std::uint32_t count = 0;
  faults().pretend_capability(75);
  expect_no_code(engine().probe(&device, 1, &count));
  EXPECT_EQ(count, 0u);
  EXPECT_NE(std::string(device.unusable).find("no code for this device"), std::string::npos);
  for (const std::uint32_t asked : {0u, 1u}) {  // any, or the first
    request.resources.devices.count = asked;
    expect_no_code(run_join(engine(), request).status);
  }
  faults().pretend_capability(0);
  EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kEnd);
}

TEST_P(DeviceFailures, the_current_context_stays_what_it_was) {
  const void* const before = faults().current_context();
  const Points points(2, std::vector<double>(2 * 3000, 1.0));
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 1);
  request.knobs.batch_pairs = 1000;
  Join* join = nullptr;
  ASSERT_TRUE(engine().open(&request, &join).ok());
  EXPECT_EQ(faults().current_context(), before);
  ResultBatch batch{};
  ASSERT_TRUE(engine().next_batch(join, &batch).ok());
  EXPECT_EQ(faults().current_context(), before);
  engine().close(join);
  EXPECT_EQ(faults().current_context(), before);
  request.resources.devices.number[0] = 1000;
  EXPECT_EQ(engine().open(&request, &join).code, StatusCode::kUnavailable);
  EXPECT_EQ(faults().current_context(), before);
}

/// Leaves a process without its device: to be run alone, and after the others.
class DeviceLost : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Engine, DeviceLost, testing::ValuesIn(engines_with_faults()), engine_name);

TEST_P(DeviceLost, joins_say_so_and_can_be_closed) {
  Random random(504);
  const Points points(2, make_values(Shape::kUniform, random, 5000, 2));
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 5);
  request.knobs.batch_pairs = 100;
  Join* join = nullptr;
  ASSERT_TRUE(engine().open(&request, &join).ok());
  ResultBatch batch{};
  ASSERT_TRUE(engine().next_batch(join, &batch).ok());
  faults().break_device();
  Status status{};
  while (status.ok()) status = engine().next_batch(join, &batch);
  EXPECT_EQ(status.code, StatusCode::kDeviceFailure) << status.message;
  EXPECT_NE(std::string(status.hint).find("reconnect"), std::string::npos) << status.hint;
  JoinStats stats{};
  engine().stats(join, &stats);  // as the server asks before it closes
  EXPECT_EQ(stats.left_rows, points.rows());
  engine().close(join);
  const RunResult next = run_join(engine(), request);
  EXPECT_EQ(next.status.code, StatusCode::kDeviceFailure) << next.status.message;
  EXPECT_NE(std::string(next.status.hint).find("reconnect"), std::string::npos);
}

}  // namespace
}  // namespace gpujoin::test
