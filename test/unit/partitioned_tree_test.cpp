// Spanning trees in parts against Prim's, edge by edge, and against the trees of rows in memory: of
// parts of a few rows each, of data in a file, and of data that does not fit in memory.

#include "engine/joins/partitioned_tree.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "allocation_hooks.h"
#include "engine_harness.h"
#include "points.h"
#include "small_parts.h"
#include "stored_points.h"
#include "trees.h"

namespace gpujoin::test {
namespace {

/// Trees of parts of so many rows, of which joins of up to `rows_that_fit` have memory.
struct TreeParts {
  static inline std::uint64_t rows = 40, rows_that_fit = ~std::uint64_t{0};

  static std::unique_ptr<Join> open(const JoinRequest& part) {
    if (is_of_spanning_tree(part.output())) {
      if (part.sides.rows() > rows_that_fit) throw MemoryLimitExceeded{2, 1};
      EXPECT_LE(part.sides.rows(), 2 * rows);
      EXPECT_TRUE(has_scores(part.left()));
    }
    return std::make_unique<TableJoin>(*cpu_engine(), part);
  }
};

const EngineTable& tree_in_parts() {
  static EngineTable table = engine_of_parts();
  table.open = [](const JoinRequest* request, Join** join) -> Status {
    *join = new PartitionedTree(*request, PartSize{1, TreeParts::rows}, TreeParts::open);
    return {};
  };
  return table;
}

JoinRequest make_tree_request(const Points& points, Metric metric, std::uint64_t min_points) {
  return make_request(points, nullptr, metric, kMax).asking(Output::spanning_tree(min_points));
}

void put_in_file(JoinRequest* request, StoredPoints& stored, MemoryFile& file) {
  request->sides = Sides::one(stored.in_file(file), PairSelection::kAll);
  request->resources.scratch = file.functions();
}

void expect_edges(const RunResult& result, const std::vector<FoundPair>& expected) {
  ASSERT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
  ASSERT_EQ(result.pairs.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(result.pairs[i], expected[i])
        << "edge " << i << " of " << expected.size() << ": " << result.pairs[i].id1 << " "
        << result.pairs[i].id2 << " " << result.pairs[i].distance << ", expected "
        << expected[i].id1 << " " << expected[i].id2 << " " << expected[i].distance;
}

/// The rows lie in memory, and then in a file.
void expect_tree(const Points& points, Metric metric, std::uint64_t min_points) {
  const std::vector<FoundPair> expected = define_tree(points, metric, min_points);
  MemoryFile file;
  StoredPoints stored(points, 4);
  for (const bool in_file : {false, true}) {
    SCOPED_TRACE(testing::Message() << to_string(metric) << ", " << points.dims() << " columns, "
                                    << min_points << " points, in file " << in_file);
    JoinRequest request = make_tree_request(points, metric, min_points);
    if (in_file) put_in_file(&request, stored, file);
    const RunResult result = run_join(tree_in_parts(), request);
    expect_edges(result, expected);
    if (testing::Test::HasFatalFailure()) return;
    if (expected.size() > 2 * TreeParts::rows) {
      EXPECT_GT(result.stats.parts, 2u);
    }
  }
}

TEST(PartitionedTree, is_prims_edge_by_edge) {
  Random random(3101);
  int turn = 0;
  for (const Shape shape : kShapes)
    for (const Metric metric : kMetrics)
      for (const std::uint32_t dims : {1u, 2u, 3u, 6u, 20u}) {
        const std::uint64_t rows = 50 + random.index(kSanitized ? 40 : 200);
        const ScalarType scalar = random.index(2) ? ScalarType::kFloat32 : ScalarType::kFloat64;
        const Points points = Points(dims, make_values(shape, random, rows, dims), scalar)
                                  .with_ids(shuffled_ids(rows));
        TreeParts::rows = random.index(2) ? 20 : 60;
        for (const std::uint64_t min_points : {1u, 2u, 5u, 40u})
          if (!kSanitized || turn++ % 3 == 0) expect_tree(points, metric, min_points);
        if (HasFatalFailure()) return;
      }
}

TEST(PartitionedTree, of_ties_prefers_smaller_ids) {
  Random random(3102);
  for (int round = 0; round < (kSanitized ? 8 : 40); ++round) {
    const std::uint32_t dims = 1 + random.index(3);
    const std::uint64_t rows = 100 + random.index(200);
    std::vector<double> values;
    const std::uint64_t kinds = 1 + random.index(round % 2 == 0 ? 8 : 60);
    for (std::uint64_t i = 0; i < rows * dims; ++i)
      values.push_back(static_cast<double>(random.index(kinds)));
    const Points points = Points(dims, values).with_ids(shuffled_ids(rows));
    const Metric metric = random.pick(kMetrics);
    TreeParts::rows = 20 + random.index(60);
    for (const std::uint64_t min_points : {1u, 3u, 12u}) expect_tree(points, metric, min_points);
    if (HasFatalFailure()) return;
  }
}

/// Groups far from each other, and rows far from all, in the column that is cut or in another one.
TEST(PartitionedTree, of_groups_and_outliers) {
  Random random(3103);
  for (int round = 0; round < (kSanitized ? 8 : 40); ++round) {
    const std::uint64_t rows = 150 + random.index(200);
    const double apart = std::pow(10, random.between(-2, 4));
    const std::uint64_t groups = 1 + random.index(9), far = random.index(12);
    std::vector<double> values;
    for (std::uint64_t i = 0; i < rows; ++i) {
      const double group = static_cast<double>(random.index(groups));
      const bool is_far = random.index(100) < far;
      values.push_back(group * apart + random.between(-1, 1));
      values.push_back(is_far ? 100 * apart * random.between(-1, 1) : random.between(-1, 1));
    }
    const Points points = Points(2, values).with_ids(shuffled_ids(rows));
    TreeParts::rows = 20 + random.index(40);
    for (const Metric metric : {Metric::kL2, Metric::kLInf})
      for (const std::uint64_t min_points : {1u, 4u}) expect_tree(points, metric, min_points);
    if (HasFatalFailure()) return;
  }
}

TEST(PartitionedTree, of_odd_values_leaves_them_out) {
  Random random(3104);
  for (int round = 0; round < (kSanitized ? 8 : 20); ++round) {
    const std::uint32_t dims = 1 + random.index(3);
    const std::uint64_t rows = 150;
    const double scale =
        random.pick(std::vector<double>{1e-320, 1e-200, 1e-160, 1, 1e150, 1e154, 1e307, 1.7e308});
    std::vector<double> values;
    for (std::uint64_t i = 0; i < rows * dims; ++i)
      values.push_back(random.index(40) == 0
                           ? random.pick(std::vector<double>{kNan, kInf, -kInf, -0.0, kMax, -kMax})
                           : scale * random.between(-1, 1));
    const Points points = Points(dims, values).with_ids(shuffled_ids(rows));
    for (const Metric metric : kMetrics)
      for (const std::uint64_t min_points : {1u, 4u, 149u, 150u, 151u, 1000000u})
        expect_tree(points, metric, min_points);
    if (HasFatalFailure()) return;
  }
}

TEST(PartitionedTree, of_few_rows_is_small) {
  for (const std::uint64_t min_points : {1u, 2u, 3u}) {
    expect_tree(Points(2, {1, 2}), Metric::kL2, min_points);
    expect_tree(Points(2, {1, 2, 4, 6}), Metric::kL2, min_points);
    expect_tree(Points(2, {kNan, 2, kInf, 6}), Metric::kL2, min_points);
    expect_tree(Points(2, {0, 0, 0, 0}), Metric::kCosine, min_points);
  }
}

TEST(PartitionedTree, lack_of_memory_makes_parts_smaller) {
  Random random(3105);
  const Points points =
      Points(2, make_values(Shape::kClustered, random, 300, 2)).with_ids(shuffled_ids(300));
  TreeParts::rows = 150;
  const std::vector<FoundPair> expected = define_tree(points, Metric::kL2, 4);
  for (const std::uint64_t fitting : {250u, 90u, 40u, 5u}) {
    TreeParts::rows_that_fit = fitting;
    const RunResult result = run_join(tree_in_parts(), make_tree_request(points, Metric::kL2, 4));
    if (fitting == 5)
      EXPECT_EQ(result.status.code, StatusCode::kMemoryLimit);
    else
      expect_edges(result, expected);
  }
  TreeParts::rows_that_fit = ~std::uint64_t{0};
  TreeParts::rows = 40;
}

/// Rows of one id are in the order of the dataset.
TEST(PartitionedTree, of_ids_that_repeat) {
  Random random(3106);
  std::vector<double> values;
  std::vector<std::int64_t> ids;
  for (int i = 0; i < 200; ++i) {
    values.push_back(static_cast<double>(random.index(30)));
    ids.push_back(static_cast<std::int64_t>(random.index(5)));
  }
  const Points points = Points(1, values).with_ids(ids);
  MemoryFile file;
  StoredPoints stored(points, 4);
  for (const std::uint64_t min_points : {1u, 4u}) {
    JoinRequest request = make_tree_request(points, Metric::kL2, min_points);
    const RunResult whole = run_join(*cpu_engine(), request);
    expect_edges(run_join(tree_in_parts(), request), whole.pairs);
    put_in_file(&request, stored, file);
    expect_edges(run_join(tree_in_parts(), request), whole.pairs);
  }
}

class TreesInParts : public EngineTest {};
GPUJOIN_ON_EVERY_ENGINE(TreesInParts);

/// What the engine finds of rows in memory, and of the same rows in a file, in less memory.
TEST_P(TreesInParts, of_many_rows_in_a_file_are_those_of_rows_in_memory) {
  Random random(3107);
  const std::uint64_t rows = kSanitized ? 10000 : 60000;
  for (const Shape shape : {Shape::kUniform, Shape::kClustered})
    for (const std::uint32_t dims : {1u, 2u, 3u}) {
      const Points points = Points(dims, make_values(shape, random, rows, dims),
                                   dims == 2 ? ScalarType::kFloat32 : ScalarType::kFloat64)
                                .with_ids(shuffled_ids(rows));
      const Metric metric = dims == 3 ? Metric::kL1 : Metric::kL2;
      for (const bool clusters : {false, true}) {
        JoinRequest request =
            make_tree_request(points, metric, 5)
                .asking(clusters ? Output::stable_clusters(5, 20) : Output::spanning_tree(5));
        RunResult whole = run_join(engine(), request);
        ASSERT_EQ(whole.status.code, StatusCode::kEnd) << whole.status.message;
        MemoryFile file;
        StoredPoints stored(points, 10);
        put_in_file(&request, stored, file);
        const std::uint64_t limit = rows * 100 + (2u << 20);
        if (is_device(engine()))
          request.resources.device_memory_limit = rows * 200;
        else
          request.resources.memory_limit = limit;
        RunResult parts = run_join(engine(), request);
        ASSERT_EQ(parts.status.code, StatusCode::kEnd) << parts.status.message;
        EXPECT_GT(parts.stats.parts, 2u);
        if (!is_device(engine())) {
          EXPECT_LE(parts.stats.memory_peak, limit);
        }
        EXPECT_EQ(parts.stats.pairs, parts.pairs.size());
        if (clusters) {
          std::sort(whole.pairs.begin(), whole.pairs.end());
          std::sort(parts.pairs.begin(), parts.pairs.end());
        }
        EXPECT_TRUE(parts.pairs == whole.pairs) << dims;
      }
    }
}

/// Core distances are those of rows further away than a query may ask for, which devices leave to
/// the CPU.
TEST(TreesOfTheCpu, with_more_min_points_than_neighbors_can_be_asked_for) {
  if (kSanitized) GTEST_SKIP() << "too long under a sanitizer";
  Random random(3112);
  const std::uint64_t rows = kMostNeighbors + 100, min_points = kMostNeighbors + 50;
  const Points points =
      Points(2, make_values(Shape::kClustered, random, rows, 2)).with_ids(shuffled_ids(rows));
  JoinRequest request = make_tree_request(points, Metric::kL2, min_points);
  const RunResult whole = run_join(*cpu_engine(), request);
  ASSERT_EQ(whole.pairs.size(), rows - 1);
  MemoryFile file;
  StoredPoints stored(points, 10);
  put_in_file(&request, stored, file);
  request.resources.memory_limit = 64u << 20;
  expect_edges(run_join(*cpu_engine(), request), whole.pairs);
}

class TreesBeyondDevices : public EngineTest {};
GPUJOIN_ON_DEVICES(TreesBeyondDevices);

/// With room for the search of core distances, and not for all of the tree.
TEST_P(TreesBeyondDevices, of_rows_in_memory_are_those_of_the_host) {
  Random random(3111);
  const std::uint64_t rows = 100000;
  for (const std::uint32_t dims : {1u, 2u, 3u})
    for (const std::uint64_t min_points : {1u, 5u, 40u}) {
      const Points points = Points(dims, make_values(Shape::kClustered, random, rows, dims))
                                .with_ids(shuffled_ids(rows));
      JoinRequest request = make_tree_request(points, Metric::kL2, min_points);
      const RunResult whole = run_join(*cpu_engine(), request);
      request.resources.device_memory_limit = rows * 150;
      const RunResult parts = run_join(engine(), request);
      ASSERT_EQ(parts.status.code, StatusCode::kEnd) << parts.status.message;
      EXPECT_GT(parts.stats.parts, 2u);
      EXPECT_TRUE(parts.pairs == whole.pairs) << dims << " columns, " << min_points << " points";
    }
}

TEST_P(TreesInParts, need_memory_for_what_is_held_of_each_row) {
  const std::uint64_t rows = 30000;
  Random random(3108);
  const Points points(2, make_values(Shape::kUniform, random, rows, 2));
  MemoryFile file;
  StoredPoints stored(points, 10);
  for (const bool clusters : {false, true}) {
    JoinRequest request =
        make_tree_request(points, Metric::kL2, 2)
            .asking(clusters ? Output::stable_clusters(2, 2) : Output::spanning_tree(2));
    put_in_file(&request, stored, file);
    request.resources.memory_limit = rows * (clusters ? 100 : 30);  // beside what a device takes
    EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kMemoryLimit);
  }
}

TEST_P(TreesInParts, of_a_file_that_fails) {
  Random random(3109);
  const Points points(2, make_values(Shape::kUniform, random, 600, 2));
  const std::int64_t before = live_allocations();
  for (const std::uint64_t calls : {0, 5, 15, 25, 60}) {
    MemoryFile file;
    StoredPoints stored(points, 6);
    JoinRequest request = make_tree_request(points, Metric::kL2, 3);
    put_in_file(&request, stored, file);
    file.fail_after(calls);
    EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kCallerFailed) << calls;
  }
  expect_no_leak(engine(), before);
}

TEST_P(TreesInParts, an_interrupt_is_noticed_and_the_join_goes_on) {
  Random random(3110);
  const Points points(2, make_values(Shape::kUniform, random, 600, 2));
  MemoryFile file;
  StoredPoints stored(points, 6);
  JoinRequest request = make_tree_request(points, Metric::kL2, 3);
  put_in_file(&request, stored, file);
  request.knobs.batch_pairs = 7;
  volatile int interrupt = 1;
  request.resources.interrupt = &interrupt;
  const RunResult result = run_join(engine(), request, &interrupt);
  EXPECT_GT(result.interruptions, 0u);
  EXPECT_EQ(result.largest_batch, 7u);
  expect_edges(result, define_tree(points, Metric::kL2, 3));
}

}  // namespace
}  // namespace gpujoin::test
