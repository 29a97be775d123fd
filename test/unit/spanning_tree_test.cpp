// Spanning trees against Prim's, edge by edge, and the clusters in them against the definition:
// metrics, shapes, ties, duplicates, odd values, dimensions, threads, little memory, batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "allocation_hooks.h"
#include "engine_harness.h"
#include "points.h"
#include "stored_points.h"
#include "trees.h"

namespace gpujoin::test {
namespace {

class SpanningTree : public EngineTest {};

/// A device has trees of boxes, which leave nothing out in many dimensions.
bool is_served(const EngineTable& engine, const Points& points, Metric metric) {
  return !is_device(engine) || points.rows() == 0 ||
         (metric != Metric::kCosine && points.dims() <= 16);
}

JoinRequest make_tree_request(const Points& points, Metric metric, std::uint64_t min_points) {
  return make_request(points, nullptr, metric, kMax).asking(Output::spanning_tree(min_points));
}

std::vector<std::int64_t> shuffled(Random& random, std::uint64_t rows) {
  std::vector<std::int64_t> ids(rows);
  std::iota(ids.begin(), ids.end(), -20);
  for (std::uint64_t i = rows; i > 1; --i) std::swap(ids[i - 1], ids[random.index(i)]);
  return ids;
}

void expect_tree(const EngineTable& engine, const Points& points, Metric metric,
                 std::uint64_t min_points, unsigned threads = 2) {
  JoinRequest request = make_tree_request(points, metric, min_points);
  request.resources.threads = threads;
  const RunResult result = run_join(engine, request);
  if (!is_served(engine, points, metric)) {
    EXPECT_EQ(result.status.code, StatusCode::kUnavailable);
    return;
  }
  ASSERT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
  const std::vector<FoundPair> expected = define_tree(points, metric, min_points);
  ASSERT_EQ(result.pairs.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(result.pairs[i], expected[i])
        << "edge " << i << " of " << expected.size() << ": " << result.pairs[i].id1 << " "
        << result.pairs[i].id2 << " " << result.pairs[i].distance << ", expected "
        << expected[i].id1 << " " << expected[i].id2 << " " << expected[i].distance << ", "
        << to_string(metric) << ", " << points.dims() << " columns, " << min_points << " points";
}

TEST_P(SpanningTree, is_prims_edge_by_edge) {
  Random random(2301);
  for (const Shape shape : kShapes)
    for (const Metric metric : kMetrics)
      for (const std::uint32_t dims : {1u, 2u, 3u, 4u, 6u, 9u, 40u}) {
        const std::uint64_t rows = 2 + random.index(kSanitized ? 150 : 350);
        const ScalarType scalar = random.index(2) ? ScalarType::kFloat32 : ScalarType::kFloat64;
        const Points points = Points(dims, make_values(shape, random, rows, dims), scalar)
                                  .with_ids(shuffled(random, rows));
        for (const std::uint64_t min_points : {1u, 2u, 5u, 16u, 40u})
          expect_tree(engine(), points, metric, min_points);
        if (HasFatalFailure()) return;
      }
}

TEST_P(SpanningTree, of_ties_prefers_smaller_ids) {
  Random random(2302);
  for (int round = 0; round < (kSanitized ? 8 : 40); ++round) {
    const std::uint32_t dims = 1 + random.index(3);
    const std::uint64_t rows = 100 + random.index(400);
    std::vector<double> values;
    const std::uint64_t kinds = 2 + random.index(8);
    for (std::uint64_t i = 0; i < rows * dims; ++i)
      values.push_back(static_cast<double>(random.index(kinds)));
    const Points points = Points(dims, values).with_ids(shuffled(random, rows));
    const Metric metric = random.pick(kMetrics);
    for (const std::uint64_t min_points : {1u, 3u, 12u, 30u})
      expect_tree(engine(), points, metric, min_points, 1 + random.index(4));
    if (HasFatalFailure()) return;
  }
}

TEST_P(SpanningTree, of_odd_values_leaves_them_out) {
  Random random(2303);
  for (int round = 0; round < 20; ++round) {
    const std::uint32_t dims = 1 + random.index(3);
    const std::uint64_t rows = 150;
    const double scale =
        random.pick(std::vector<double>{1e-320, 1e-200, 1e-160, 1, 1e150, 1e154, 1e307, 1.7e308});
    std::vector<double> values;
    for (std::uint64_t i = 0; i < rows * dims; ++i)
      values.push_back(random.index(40) == 0
                           ? random.pick(std::vector<double>{kNan, kInf, -kInf, -0.0, kMax, -kMax})
                           : scale * random.between(-1, 1));
    const Points points = Points(dims, values).with_ids(shuffled(random, rows));
    for (const Metric metric : kMetrics)
      for (const std::uint64_t min_points : {1u, 4u, 149u, 150u, 151u, 1000000u})
        expect_tree(engine(), points, metric, min_points);
    if (HasFatalFailure()) return;
  }
}

TEST_P(SpanningTree, of_few_rows_is_small) {
  for (const std::uint64_t min_points : {1u, 2u, 3u}) {
    expect_tree(engine(), Points(2, {}), Metric::kL2, min_points);
    expect_tree(engine(), Points(2, {1, 2}), Metric::kL2, min_points);
    expect_tree(engine(), Points(2, {1, 2, 4, 6}), Metric::kL2, min_points);
    expect_tree(engine(), Points(2, {kNan, 2, kInf, 6}), Metric::kL2, min_points);
    expect_tree(engine(), Points(2, {0, 0, 0, 0}), Metric::kCosine, min_points);
  }
}

TEST_P(SpanningTree, is_the_same_by_several_threads_and_in_little_memory) {
  Random random(2304);
  const std::uint64_t rows = 20000;
  std::vector<double> values = make_values(Shape::kClustered, random, rows, 2);
  for (std::uint64_t i = 0; i < 2000; ++i) values[i] = std::round(values[i]);
  const Points points = Points(2, values).with_ids(shuffled(random, rows));
  for (const std::uint64_t min_points : {1u, 5u, 30u}) {
    if (kSanitized && min_points != 5) continue;  // its threads do the same for each
    JoinRequest request = make_tree_request(points, Metric::kL2, min_points);
    request.resources.threads = 1;
    const RunResult one = run_join(engine(), request);
    ASSERT_EQ(one.pairs.size(), rows - 1) << one.status.message;
    EXPECT_EQ(one.stats.pairs, rows - 1);
    request.resources.threads = 4;
    EXPECT_EQ(run_join(engine(), request).pairs, one.pairs);
    if (is_device(engine())) {
      request.resources.device_memory_limit = 1 << 20;
      EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kUnavailable);
      continue;
    }
    request.resources.memory_limit = 5 << 20;  // no room for lists
    const RunResult little = run_join(engine(), request);
    EXPECT_EQ(little.pairs, one.pairs) << little.status.message;
    EXPECT_LE(little.stats.memory_peak, request.resources.memory_limit);
    request.resources.memory_limit = 3 << 19;  // for the rows, but not for what each of them takes
    EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kMemoryLimit);
  }
}

TEST_P(SpanningTree, is_of_rows_in_memory) {
  const Points points(2, {1, 2, 3, 4, 5, 6});
  StoredPoints stored(points, 1);
  MemoryFile file;
  JoinRequest request = make_tree_request(points, Metric::kL2, 1);
  request.sides = Sides::one(stored.in_file(file), PairSelection::kAll);
  request.resources.scratch = file.functions();
  request.resources.memory_limit = 1 << 20;
  EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kMemoryLimit);
}

class SpanningTreeOnDevices : public SpanningTree {};
GPUJOIN_ON_DEVICES(SpanningTreeOnDevices);

TEST_P(SpanningTreeOnDevices, is_that_of_the_host) {
  Random random(2308);
  for (const std::uint32_t dims : {1u, 2u, 3u, 8u, 11u}) {
    const std::uint64_t rows = dims > 8 ? 6000 : 60000;
    std::vector<double> values = make_values(Shape::kClustered, random, rows, dims);
    for (std::uint64_t i = 0; i < values.size() / 4; ++i) values[i] = std::round(4 * values[i]) / 4;
    for (std::uint64_t i = 0; i < 100; ++i) values[random.index(values.size())] = kInf;
    const ScalarType scalar = dims % 2 ? ScalarType::kFloat32 : ScalarType::kFloat64;
    const Points points = Points(dims, values, scalar).with_ids(shuffled(random, rows));
    for (const Metric metric : {Metric::kL2, Metric::kL1, Metric::kLInf})
      for (const std::uint64_t min_points : {1u, 2u, 6u, 33u, 34u, 300u}) {
        const JoinRequest request = make_tree_request(points, metric, min_points);
        const RunResult result = run_join(engine(), request);
        ASSERT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
        ASSERT_EQ(result.pairs, run_join(*cpu_engine(), request).pairs)
            << to_string(metric) << ", " << dims << " columns, " << min_points << " points";
      }
  }
}

TEST_P(SpanningTree, of_equal_rows_takes_no_quadratic_time) {
  const std::uint64_t rows = kSanitized ? 20000 : 200000;
  for (const double other : {0.0, 3.0}) {
    std::vector<double> values(2 * rows, 1.5);
    for (std::uint64_t i = 0; i < values.size(); i += 4) values[i] += other;
    const Points points(2, values);
    for (const std::uint64_t min_points : {1u, 5u, 20u}) {
      const RunResult result =
          run_join(engine(), make_tree_request(points, Metric::kL2, min_points));
      ASSERT_EQ(result.pairs.size(), rows - 1) << result.status.message;
      EXPECT_EQ(result.pairs[0], (FoundPair{0, other > 0 ? 2 : 1, 0}));
      EXPECT_EQ(result.pairs.back().distance, other);
      EXPECT_LT(result.stats.candidates, rows * 2000);
    }
  }
}

TEST_P(SpanningTree, comes_in_batches_and_after_interruptions) {
  Random random(2305);
  const std::uint64_t rows = kSanitized ? 12000 : 60000;  // enough to be interrupted meanwhile
  const Points points(2, make_values(Shape::kUniform, random, rows, 2));
  JoinRequest request = make_tree_request(points, Metric::kL2, 4);
  const std::vector<FoundPair> whole = run_join(engine(), request).pairs;
  ASSERT_EQ(whole.size(), rows - 1);
  request.knobs.batch_pairs = 7;
  volatile int raised = 1;
  request.resources.interrupt = &raised;
  const RunResult result = run_join(engine(), request, &raised);
  EXPECT_EQ(result.pairs, whole);
  EXPECT_EQ(result.largest_batch, 7u);
  EXPECT_GE(result.interruptions, 1u);
}

TEST_P(SpanningTree, leaves_nothing_behind_when_closed_early) {
  const std::int64_t before = live_allocations();
  {
    Random random(2306);
    const Points points(2, make_values(Shape::kUniform, random, 50000, 2));
    const JoinRequest request = make_tree_request(points, Metric::kL2, 5);
    Join* join = nullptr;
    ASSERT_TRUE(engine().open(&request, &join).ok());
    engine().close(join);
  }
  expect_no_leak(engine(), before);
}

TEST_P(SpanningTree, tells_how_much_is_done_and_all_of_it_when_edges_come) {
  Random random(2308);
  const std::uint64_t rows = 3000;
  const Points points(2, make_values(Shape::kExponential, random, rows, 2));
  for (const std::uint64_t min_points : {1u, 5u, 40u}) {
    JoinRequest request = make_tree_request(points, Metric::kL2, min_points);
    request.resources.patience_ms = 1;
    Join* join = nullptr;
    ASSERT_TRUE(engine().open(&request, &join).ok());
    std::uint64_t done = 0, batches = 0;
    for (;;) {
      ResultBatch batch{};
      const StatusCode code = engine().next_batch(join, &batch).code;
      ASSERT_TRUE(code == StatusCode::kOk || code == StatusCode::kInterrupted ||
                  code == StatusCode::kEnd);
      JoinStats stats{};
      engine().stats(join, &stats);
      EXPECT_GE(stats.work_done, done);
      EXPECT_LE(stats.work_done, stats.work);
      done = stats.work_done;
      if (code == StatusCode::kInterrupted) continue;
      EXPECT_GE(stats.work, rows);
      EXPECT_EQ(stats.work_done, stats.work);
      if (code == StatusCode::kEnd) break;
      ++batches;
    }
    EXPECT_GT(batches, 0u);
    engine().close(join);
  }
}

TEST_P(SpanningTree, has_clusters_as_defined) {
  Random random(2307);
  int compared = 0;
  for (int round = 0; round < (kSanitized ? 30 : 150); ++round) {
    const std::uint32_t dims = 1 + random.index(3);
    const std::uint64_t rows = 1 + random.index(250);
    std::vector<double> values = make_values(random.pick(kShapes), random, rows, dims);
    if (random.index(3) == 0)
      for (double& x : values) x = std::round(x);
    if (random.index(3) == 0) values[0] = kNan;
    const Points points = Points(dims, values).with_ids(shuffled(random, rows));
    const std::uint64_t min_points = 1 + random.index(8), min_size = 2 + random.index(9);
    std::vector<std::int64_t> order;  // ids ascending: what clusters are numbered by
    for (std::uint64_t row = 0; row < rows; ++row) order.push_back(points.id(row));
    std::sort(order.begin(), order.end());
    std::vector<FoundPair> edges = define_tree(points, Metric::kL2, min_points);
    for (FoundPair& edge : edges) {
      edge.id1 -= order[0];  // ids are consecutive
      edge.id2 -= order[0];
    }
    const DefinedClusters defined = define_stable_clusters(rows, edges, min_size);
    if (defined.is_close) continue;
    ++compared;
    const RunResult result =
        run_join(engine(), make_request(points, nullptr, Metric::kL2, kMax)
                               .asking(Output::stable_clusters(min_points, min_size)));
    ASSERT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
    ASSERT_EQ(result.pairs.size(), rows);
    for (std::uint64_t i = 0; i < rows; ++i) {
      ASSERT_EQ(result.pairs[i].id1, order[i]);
      ASSERT_EQ(result.pairs[i].id2, defined.clusters[i]) << "id " << order[i];
      ASSERT_NEAR(result.pairs[i].distance, defined.probabilities[i], 1e-12);
    }
  }
  EXPECT_GT(compared, kSanitized ? 15 : 75);
}

TEST_P(SpanningTree, is_of_one_dataset) {
  const Points points(1, {1, 2});
  const JoinRequest one = make_request(points, nullptr, Metric::kL2, 1);
  const JoinRequest two = make_request(points, &points, Metric::kL2, 1);
  for (const JoinRequest& request :
       {two.asking(Output::spanning_tree(1)), two.asking(Output::stable_clusters(1, 2)),
        one.asking(Output::spanning_tree(0)), one.asking(Output::stable_clusters(1, 1))})
    EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kInvalidArgument);
}

GPUJOIN_ON_EVERY_ENGINE(SpanningTree);

}  // namespace
}  // namespace gpujoin::test
