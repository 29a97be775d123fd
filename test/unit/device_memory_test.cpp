// Joins whose data does not fit into the memory limit of a device: they are done in parts, or
// refused, and are never wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "boxes.h"
#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

class DeviceMemory : public EngineTest {};
GPUJOIN_ON_DEVICES(DeviceMemory);

constexpr std::uint64_t kMegabyte = 1 << 20;

TEST_P(DeviceMemory, joins_in_parts_match_brute_force) {
  constexpr double eps = 3;
  Random random(401);
  for (const Shape shape : {Shape::kUniform, Shape::kClustered, Shape::kExponential}) {
    const Points left(2, make_values(shape, random, 1500, 2));
    const Points right(2, make_values(shape, random, 900, 2));
    for (const Points* other : {static_cast<const Points*>(nullptr), &right}) {
      JoinRequest request = make_request(left, other, Metric::kL2, eps);
      request.resources.device_memory_limit =
          2 * kMegabyte + kMegabyte / 8;  // parts of some hundred points
      EXPECT_TRUE(every_output_matches(engine(), request, Oracle(left, other, Metric::kL2, eps)));
    }
  }
}

TEST_P(DeviceMemory, parts_of_sides_far_apart_never_meet) {
  constexpr double eps = 3;
  Random random(404);
  std::vector<double> values = make_values(Shape::kUniform, random, 1500, 2);
  const Points left(2, values);
  for (double& value : values) value += 1e6;
  const Points right(2, values);
  JoinRequest request = make_request(left, &right, Metric::kL2, eps);
  request.resources.device_memory_limit = 2 * kMegabyte + kMegabyte / 8;
  EXPECT_TRUE(every_output_matches(engine(), request, Oracle(left, &right, Metric::kL2, eps)));
}

TEST_P(DeviceMemory, a_join_in_parts_can_be_interrupted_and_goes_on) {
  constexpr double eps = 3;
  Random random(405);
  const Points points(2, make_values(Shape::kUniform, random, 1500, 2));
  JoinRequest request = make_request(points, nullptr, Metric::kL2, eps);
  request.resources.device_memory_limit = 2 * kMegabyte + kMegabyte / 8;
  volatile int interrupt = 1;
  request.resources.interrupt = &interrupt;
  const RunResult result = run_join(engine(), request, &interrupt);
  EXPECT_TRUE(matches_oracle(result, request, Oracle(points, nullptr, Metric::kL2, eps)));
  EXPECT_EQ(result.interruptions, 1u);
}

TEST_P(DeviceMemory, candidates_that_do_not_fit_are_found_again) {
  Random random(406);
  const Points left(12, make_values(Shape::kUniform, random, 2000, 12));
  const Points right(12, make_values(Shape::kUniform, random, 1100, 12));
  for (const double eps : {60.0, 500.0}) {  // a few pairs of some tiles, and all pairs of all
    for (const Points* other : {static_cast<const Points*>(nullptr), &right}) {
      JoinRequest request = make_request(left, other, Metric::kL2, eps);
      request.knobs.index = IndexMethod::kTiles;
      request.resources.device_memory_limit = 6 * kMegabyte;
      EXPECT_TRUE(every_output_matches(engine(), request, Oracle(left, other, Metric::kL2, eps)));
    }
  }
}

TEST_P(DeviceMemory, more_pairs_at_the_radius_itself_than_there_is_room_for) {
  // Whole numbers: a screen leaves every twentieth pair open, and counts decide where they find
  // them what their list has no room for.
  Random random(407);
  std::vector<std::int64_t> ids;
  for (int i = 0; i < 3000; ++i) ids.push_back(static_cast<std::int64_t>(random.index(2000)));
  const Points left =
      Points(12, make_values(Shape::kLattice, random, 3000, 12), ScalarType::kFloat32)
          .with_ids(ids);
  const Points right(12, make_values(Shape::kLattice, random, 1500, 12), ScalarType::kFloat32);
  const double eps = std::sqrt(30.0);
  for (const Points* other : {static_cast<const Points*>(nullptr), &right}) {
    const Oracle oracle(left, other, Metric::kL2, eps);
    JoinRequest request = make_request(left, other, Metric::kL2, eps);
    request.knobs.index = IndexMethod::kTiles;
    request.resources.device_memory_limit = 6 * kMegabyte;
    for (const AccessPattern pattern : {AccessPattern::kAuto, AccessPattern::kFull}) {
      request.knobs.access_pattern = pattern;
      EXPECT_TRUE(every_output_matches(engine(), request, oracle));
      ask(request, Output::kTotal);
      const RunResult total = run_join(engine(), request);
      EXPECT_GT(total.stats.rechecked, request.resources.device_memory_limit / 64)
          << "the list is longer";
    }
  }
}

TEST_P(DeviceMemory, every_limit_is_kept_or_refused_by_every_index) {
  Random random(402);
  for (const IndexMethod index :
       {IndexMethod::kGrid, IndexMethod::kReferencePoints, IndexMethod::kTiles}) {
    const Points points(6, make_values(Shape::kUniform, random, 600, 6));
    constexpr double eps = 30;
    const Oracle oracle(points, nullptr, Metric::kL2, eps);
    int refused = 0, served = 0;
    for (std::uint64_t limit = 64; limit < 8 * kMegabyte; limit += limit / 8) {
      JoinRequest request = make_request(points, nullptr, Metric::kL2, eps);
      request.resources.device_memory_limit = limit;
      request.knobs.index = index;
      const RunResult result = run_join(engine(), request);
      if (result.status.code == StatusCode::kMemoryLimit) {
        EXPECT_STRNE(result.status.hint, "");
        ++refused;
        continue;
      }
      EXPECT_TRUE(matches_oracle(result, request, oracle)) << "limit " << limit;
      EXPECT_LE(result.stats.device_memory_peak, limit);
      ++served;
    }
    EXPECT_GT(served, 0);
    EXPECT_GT(refused, 0);
  }
}

/// Parts of counts may have all of the memory, parts of pairs half of it: the error names the
/// limit.
TEST_P(DeviceMemory, too_little_for_any_part_is_an_error_that_names_the_limit) {
  Random random(409);
  const Points points(2, make_values(Shape::kUniform, random, 60000, 2));
  for (const Output::Kind output : {Output::kTotal, Output::kPairs}) {
    JoinRequest request = make_request(points, nullptr, Metric::kL2, 0.1);
    ask(request, output);
    request.resources.device_memory_limit = kMegabyte / 2;
    const RunResult result = run_join(engine(), request);
    EXPECT_EQ(result.status.code, StatusCode::kMemoryLimit);
    EXPECT_NE(std::string(result.status.message).find("kB of 512 kB"), std::string::npos)
        << result.status.message;
  }
}

TEST_P(DeviceMemory, boxes_in_chunks_and_slices_match_brute_force) {
  Random random(407);
  const Points left(4, make_boxes(Shape::kUniform, random, 1700, 2, 2));
  const Points right(4, make_boxes(Shape::kClustered, random, 2300, 2, 1));
  for (const double eps : {0.0, 0.5}) {
    for (const Points* other : {static_cast<const Points*>(nullptr), &right}) {
      const Oracle oracle = Oracle::of_boxes(left, other, Metric::kL2, eps);
      for (const BoxMethod method : kBoxMethods) {
        for (const Output::Kind output : {Output::kPairs, Output::kTotal}) {
          JoinRequest request = make_box_request(left, other, Metric::kL2, eps);
          request.resources.device_memory_limit = kMegabyte / 4;  // some hundred boxes a side
          request.knobs.box_method = method;
          ask(request, output);
          EXPECT_TRUE(matches_oracle(run_join(engine(), request), request, oracle));
        }
      }
    }
  }
}

TEST_P(DeviceMemory, every_limit_is_kept_or_refused_by_joins_of_boxes) {
  Random random(408);
  const Points left(4, make_boxes(Shape::kUniform, random, 700, 2, 2));
  const Points right(4, make_boxes(Shape::kUniform, random, 500, 2, 2));
  const Oracle oracle = Oracle::of_boxes(left, &right, Metric::kL2, 0);
  for (const BoxMethod method : kBoxMethods) {
    int refused = 0, served = 0;
    for (std::uint64_t limit = 64; limit < kMegabyte; limit += limit / 4) {
      JoinRequest request = make_box_request(left, &right, Metric::kL2, 0);
      request.resources.device_memory_limit = limit;
      request.knobs.box_method = method;
      const RunResult result = run_join(engine(), request);
      if (result.status.code == StatusCode::kMemoryLimit) {
        EXPECT_STRNE(result.status.hint, "");
        ++refused;
        continue;
      }
      EXPECT_TRUE(matches_oracle(result, request, oracle)) << "limit " << limit;
      EXPECT_LE(result.stats.device_memory_peak, limit);
      ++served;
    }
    EXPECT_GT(served, 0);
    EXPECT_GT(refused, 0);
  }
}

TEST_P(DeviceMemory, two_hundred_joins_in_a_row_hold_no_more_than_one) {
  Random random(403);
  const Points points(2, make_values(Shape::kUniform, random, 3000, 2));
  const JoinRequest request = make_request(points, nullptr, Metric::kL2, 0.05);
  const RunResult first = run_join(engine(), request);
  for (int i = 0; i < 200; ++i) {
    const RunResult next = run_join(engine(), request);
    ASSERT_EQ(next.pairs, first.pairs);
    ASSERT_LE(next.stats.device_memory_peak, first.stats.device_memory_peak);
  }
}

}  // namespace
}  // namespace gpujoin::test
