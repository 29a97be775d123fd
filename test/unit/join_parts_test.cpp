// Joins that memory allows in parts only, of data in memory, in chunks of memory and in a file:
// each output and selection of pairs is brute force's. Which limits are kept is
// device_memory_test.cpp's.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "boxes.h"
#include "engine_harness.h"
#include "points.h"
#include "small_parts.h"
#include "stored_points.h"

namespace gpujoin::test {
namespace {

class JoinParts : public EngineTest {
 protected:
  static constexpr std::uint32_t kChunkBits = 8;

  /// The CPU engine needs the memory of many rows for its batches, so its parts are not its own.
  void SetUp() override { SmallParts::rows = 700; }
  const EngineTable& in_parts() const { return is_device(engine()) ? engine() : engine_of_parts(); }

  /// Leaves a device room for some hundred points of few dimensions at a time.
  void limit(JoinRequest& request) const {
    if (is_device(engine()))
      request.resources.device_memory_limit = (std::uint64_t{2} << 20) + (1 << 17);
  }

  /// From memory, from chunks of it, and from a file.
  void expect_exact(const Points& left, const Points* right, JoinRequest request,
                    const Oracle& oracle) {
    limit(request);
    const bool boxes = request.shape() == gpujoin::Shape::kBoxes;
    std::optional<std::size_t> third;  // of the outputs: a sanitizer sees each in one place
    const auto expect = [&](const char* where) {
      if (kSanitized) third = third.value_or(0) + 1;
      if (boxes || request.output() == Output::kTopPairs) {
        EXPECT_TRUE(matches_oracle(run_join(in_parts(), request), request, oracle)) << where;
      } else {
        EXPECT_TRUE(every_output_matches(in_parts(), request, oracle, third)) << where;
      }
    };
    expect("in memory");
    StoredPoints left_chunks(left, kChunkBits);
    StoredPoints right_chunks(right != nullptr ? *right : left, kChunkBits);
    set_sides(request, left_chunks.in_chunks(), right_chunks.in_chunks());
    expect("in chunks");
    const bool by_score = request.output() == Output::kTopPairs &&
                          request.top().scoring.function != ScoreFunction::kDistance;
    if (by_score) return;  // scores lie in memory
    MemoryFile file;
    const Dataset left_file = left_chunks.in_file(file);
    set_sides(request, left_file, right != nullptr ? right_chunks.in_file(file) : left_file);
    request.resources.scratch = file.functions();
    expect("in a file");
  }

  void expect_exact(const Points& left, const Points* right, Metric metric, double eps,
                    IndexMethod index = IndexMethod::kAuto) {
    JoinRequest request = make_request(left, right, metric, eps);
    request.knobs.index = index;
    expect_exact(left, right, request, Oracle(left, right, metric, eps));
  }
};
GPUJOIN_ON_EVERY_ENGINE(JoinParts);

std::vector<std::int64_t> repeating_ids(std::uint64_t rows) {
  std::vector<std::int64_t> ids(rows);
  for (std::uint64_t row = 0; row < rows; ++row)
    ids[row] = static_cast<std::int64_t>(row * 7919 % rows);
  return ids;
}

TEST_P(JoinParts, self_joins_match_brute_force) {
  Random random(451);
  for (const Shape shape : {Shape::kUniform, Shape::kClustered, Shape::kLattice}) {
    const Points points =
        Points(2, make_values(shape, random, 1900, 2)).with_ids(repeating_ids(1900));
    expect_exact(points, nullptr, Metric::kL2, shape == Shape::kLattice ? 0 : 0.5);
  }
}

TEST_P(JoinParts, two_datasets_match_brute_force) {
  Random random(452);
  const Points left(3, make_values(Shape::kUniform, random, 1700, 3), ScalarType::kFloat32);
  const Points right =
      Points(3, make_values(Shape::kClustered, random, 1300, 3), ScalarType::kFloat32)
          .with_ids(repeating_ids(1300));
  for (const Metric metric : {Metric::kL2, Metric::kL1, Metric::kLInf})
    expect_exact(left, &right, metric, 5);
}

TEST_P(JoinParts, every_index_matches_brute_force) {
  Random random(453);
  const Points points(6, make_values(Shape::kClustered, random, 1500, 6), ScalarType::kFloat32);
  for (const IndexMethod index :
       {IndexMethod::kNone, IndexMethod::kGrid, IndexMethod::kReferencePoints, IndexMethod::kTiles})
    expect_exact(points, nullptr, Metric::kL2, 0.5, index);
}

TEST_P(JoinParts, directions_match_brute_force_with_a_faint_one_and_without) {
  Random random(454);
  std::vector<double> values = make_values(Shape::kUniform, random, 1500, 3);
  const Points points(3, values);
  expect_exact(points, nullptr, Metric::kCosine, 0.01);
  values[0] = values[1] = values[2] = 1e-160;
  const Points faint(3, values);
  expect_exact(faint, nullptr, Metric::kCosine, 0.01);
  expect_exact(points, &faint, Metric::kCosine, 0.01);
}

TEST_P(JoinParts, rows_that_match_nothing_count_nothing) {
  Random random(455);
  std::vector<double> values = make_values(Shape::kUniform, random, 1500, 2);
  for (std::size_t row = 0; row < 1500; row += 3) values[2 * row] = row % 2 == 0 ? kNan : kInf;
  const Points points(2, values);
  expect_exact(points, nullptr, Metric::kL2, 2);
}

TEST_P(JoinParts, best_pairs_are_brute_forces) {
  Random random(456);
  std::vector<double> scores(1500);
  for (double& score : scores) score = random.between(-1, 1);
  const Points points = Points(2, make_values(Shape::kUniform, random, 1500, 2))
                            .with_ids(repeating_ids(1500))
                            .with_scores(scores);
  for (const Metric metric : {Metric::kL2, Metric::kCosine}) {
    const double eps = metric == Metric::kCosine ? 0.01 : 3;
    const Oracle oracle(points, nullptr, metric, eps);
    for (const ScoreFunction function : {ScoreFunction::kSum, ScoreFunction::kDistance}) {
      JoinRequest request = make_request(points, nullptr, metric, eps);
      request = request.asking(
          Output::top_pairs({{function, function == ScoreFunction::kDistance, {1, 1}}, 50}));
      expect_exact(points, nullptr, request, oracle);
    }
  }
}

TEST_P(JoinParts, boxes_match_brute_force) {
  Random random(457);
  const Points left(4, make_boxes(Shape::kUniform, random, 1700, 2, 2));
  const Points right(4, make_boxes(Shape::kClustered, random, 2300, 2, 1));
  for (const Points* other : {static_cast<const Points*>(nullptr), &right}) {
    const Oracle oracle = Oracle::of_boxes(left, other, Metric::kL2, 0.5);
    for (const Output::Kind output : {Output::kPairs, Output::kTotal}) {
      for (const PairSelection pairs :
           {PairSelection::kAll, PairSelection::kDistinct, PairSelection::kUnordered}) {
        if (other != nullptr && pairs != PairSelection::kAll) continue;
        JoinRequest request = make_box_request(left, other, Metric::kL2, 0.5);
        ask(request, output);
        select(request, pairs);
        expect_exact(left, other, request, oracle);
      }
    }
  }
}

TEST_P(JoinParts, boxes_without_end_match_brute_force) {
  Random random(459);
  const std::vector<double> values = make_boxes(Shape::kUniform, random, 1800, 2, 1);
  for (const auto& [low, high] : {std::pair{true, false}, {false, true}, {true, true}}) {
    std::vector<double> rows = values;
    for (std::size_t row = 0; row < 1800; row += 50) {
      double* const box = rows.data() + 4 * row;
      const std::size_t d = row / 50 % 2;
      if (low) box[d] = -kInf;
      if (high) box[2 + d] = kInf;
      if (row % 600 == 0) box[1] = kNan;
    }
    const Points boxes(4, rows);
    const JoinRequest request = make_box_request(boxes, nullptr, Metric::kL2, 0.5);
    expect_exact(boxes, nullptr, request, Oracle::of_boxes(boxes, nullptr, Metric::kL2, 0.5));
  }
}

TEST_P(JoinParts, can_be_interrupted_and_go_on) {
  Random random(458);
  const Points points(2, make_values(Shape::kUniform, random, 1500, 2));
  JoinRequest request = make_request(points, nullptr, Metric::kL2, 3);
  limit(request);
  volatile int interrupt = 1;
  request.resources.interrupt = &interrupt;
  const RunResult result = run_join(in_parts(), request, &interrupt);
  EXPECT_TRUE(matches_oracle(result, request, Oracle(points, nullptr, Metric::kL2, 3)));
  // Threads of the CPU engine may have a batch ready before anyone asks.
  EXPECT_EQ(result.interruptions,
            is_device(engine()) ? 1u : std::min<std::uint64_t>(result.interruptions, 1));
}

}  // namespace
}  // namespace gpujoin::test
