// Clusters in parts against brute force, and against the clusters of rows in memory: of parts of a
// few rows each, of data in a file, and of data whose index does not fit in memory.

#include "engine/joins/partitioned_clusters.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "allocation_hooks.h"
#include "bits.h"
#include "engine_harness.h"
#include "points.h"
#include "small_parts.h"
#include "stored_points.h"

namespace gpujoin::test {
namespace {

constexpr BorderRule kRules[] = {BorderRule::kNearest, BorderRule::kFirst};

/// Clusters of parts of so many rows, of which joins of up to `rows_that_fit` have memory.
struct ClusterParts {
  static inline std::uint64_t rows = 100, rows_that_fit = ~std::uint64_t{0};

  static std::unique_ptr<Join> open(const JoinRequest& part) {
    if (part.sides.rows() > rows_that_fit) throw MemoryLimitExceeded{2, 1};
    EXPECT_LE(part.sides.rows(), 2 * rows);
    return std::make_unique<TableJoin>(*cpu_engine(), part);
  }
};

const EngineTable& clusters_in_parts() {
  static EngineTable table = engine_of_parts();
  table.open = [](const JoinRequest* request, Join** join) -> Status {
    *join = new PartitionedClusters(*request, choose_cluster_cut(*request, kCoreWalkCosts),
                                    PartSize{1, ClusterParts::rows}, ClusterParts::open);
    return {};
  };
  return table;
}

JoinRequest make_clusters_request(const Points& points, Metric metric, double eps,
                                  std::uint64_t min_points,
                                  BorderRule borders = BorderRule::kNearest) {
  return make_request(points, nullptr, metric, eps).asking(Output::clusters(min_points, borders));
}

void expect_exact(const Points& points, Metric metric, double eps) {
  const Oracle oracle(points, nullptr, metric, eps);
  for (const std::uint64_t min_points : {1u, 2u, 3u, 5u, 20u, 100000u})
    for (const BorderRule borders : kRules) {
      // Where two rows make a core, or none does, no row is a border.
      if ((min_points < 3 || min_points > 20) && borders != kRules[min_points % 2]) continue;
      const JoinRequest request = make_clusters_request(points, metric, eps, min_points, borders);
      const RunResult result = run_join(clusters_in_parts(), request);
      EXPECT_TRUE(matches_oracle(result, request, oracle))
          << "min_points " << min_points << " dims " << points.dims();
      if (points.rows() > ClusterParts::rows) {
        EXPECT_GT(result.stats.parts, 1u);
      }
    }
}

TEST(PartitionedClusters, match_brute_force_in_every_shape_and_metric) {
  Random random(3001);
  constexpr std::uint64_t kRows = kSanitized ? 250 : 450;
  std::uint64_t turn = 0;
  for (const Shape shape : kShapes)
    for (const std::uint32_t dims : {1u, 2u, 5u}) {
      const ScalarType scalar = dims == 2 ? ScalarType::kFloat32 : ScalarType::kFloat64;
      const Points points = Points(dims, make_values(shape, random, kRows, dims), scalar)
                                .with_ids(shuffled_ids(kRows));
      for (const Metric metric : kMetrics) {
        // Radii of a row to its 2nd, 6th and 40th nearest, in turns.
        const std::vector<double> distances = distances_of_a_row(points, metric);
        ASSERT_GE(distances.size(), 40u);
        expect_exact(points, metric, distances[std::array{1, 5, 39}[turn++ % 3]]);
      }
    }
}

TEST(PartitionedClusters, a_chain_crosses_all_parts) {
  for (const std::uint32_t dims : {1u, 2u}) {
    std::vector<double> values;
    for (int i = 0; i < 1000; ++i) {
      // Two chains, 0.5 apart, each of points exactly a radius apart; the second one has a gap.
      const int place = i / 2 + (i % 2 == 1 && i > 500 ? 1 : 0);
      for (std::uint32_t d = 0; d < dims; ++d)
        values.push_back(d == 0 ? place * 0.25 : i % 2 * 0.5);
    }
    const Points points = Points(dims, values).with_ids(shuffled_ids(1000));
    expect_exact(points, Metric::kL2, 0.25);
    expect_exact(points, Metric::kL2, 0.5);
  }
}

TEST(PartitionedClusters, equal_rows_and_dense_places) {
  expect_exact(Points(2, std::vector<double>(1000, 1.5)).with_ids(shuffled_ids(500)), Metric::kL2,
               0);
  Random random(3002);
  std::vector<double> values;
  const auto add = [&](int rows, double center, double spread) {
    for (int i = 0; i < rows; ++i)
      for (int d = 0; d < 2; ++d) values.push_back(center + spread * random.between(-1, 1));
  };
  add(230, 0, 0);
  add(230, 3, 0.01);
  add(150, 6, 1);
  add(130, 0.99, 0);
  add(60, 4, 8);
  const Points points = Points(2, values).with_ids(shuffled_ids(800));
  int turn = 0;
  for (const Metric metric : kMetrics)
    for (const double eps : {0.0, 0.02, 1.0, 2.5})
      if (!kSanitized || turn++ % 3 == 0) expect_exact(points, metric, eps);
}

TEST(PartitionedClusters, all_equal_rows_take_no_quadratic_time) {
  ClusterParts::rows = 2000;
  constexpr std::uint64_t kRows = 40000;
  const Points points(2, std::vector<double>(kRows * 2, 2.5));
  for (const std::uint64_t min_points : {1u, 7u, 3000u}) {
    const JoinRequest request = make_clusters_request(points, Metric::kL2, 0.5, min_points);
    const RunResult result = run_join(clusters_in_parts(), request);
    ASSERT_EQ(result.counts.size(), kRows);
    for (const RowCount& row : result.counts)
      ASSERT_EQ(row.count, pack_cluster({ClusterRole::kCore, 0}));
    if (min_points < 3000) {
      EXPECT_LT(result.stats.candidates, kRows * 4000);
    }
    EXPECT_LT(result.stats.parts, 1000u);
  }
  ClusterParts::rows = 100;
}

/// Rows of some parts have core rows in other parts alone, or become core rows by them.
TEST(PartitionedClusters, parts_without_core_rows_of_their_own) {
  std::vector<double> values;
  const auto add = [&](double x, double y) { values.insert(values.end(), {x, y}); };
  for (int i = 0; i < 128; ++i) add(i, 100.0 * (i % 2));            // nobody is near
  for (int i = 0; i < 100; ++i) add(128, 0);                        // dense, at the edge
  for (int i = 0; i < 128; ++i) add(128.5 + i / 512.0, 50.0 * i);   // near the edge in x alone
  for (int i = 0; i < 100; ++i) add(129 + i, i % 10 == 0 ? 0 : 5);  // followers, and noise
  const Points points = Points(2, values).with_ids(shuffled_ids(456));
  for (const Metric metric : {Metric::kL2, Metric::kL1, Metric::kLInf})
    for (const double eps : {0.5, 1.0, 2.0, 60.0}) expect_exact(points, metric, eps);
}

TEST(PartitionedClusters, border_rows_follow_across_parts) {
  // In one column, groups of three at distance 2, and rows between them: with parts of 64 rows
  // some border rows lie in other parts than the rows that they may follow.
  std::vector<double> values;
  for (int group = 0; group < 80; ++group)
    for (const double x : {0.0, 0.0, 0.0, 1.0, 0.75, 1.0}) values.push_back(2 * group + x);
  ClusterParts::rows = 64;
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<std::int64_t> ids = shuffled_ids(480);
    if (turn == 1) std::reverse(ids.begin(), ids.end());
    expect_exact(Points(1, values).with_ids(ids), Metric::kL2, 1);
    const Points points = Points(1, values).with_ids(ids);
    for (const std::uint64_t min_points : {4u, 6u, 7u, 8u, 9u, 10u, 11u})
      for (const BorderRule borders : kRules) {
        const JoinRequest request =
            make_clusters_request(points, Metric::kL2, 1, min_points, borders);
        EXPECT_TRUE(matches_oracle(run_join(clusters_in_parts(), request), request,
                                   Oracle(points, nullptr, Metric::kL2, 1)));
      }
  }
  ClusterParts::rows = 100;
}

TEST(PartitionedClusters, numbers_that_are_none_or_huge_or_tiny) {
  Random random(3003);
  std::vector<double> values;
  const double odd[] = {0,    -0.0,   kNan,      kInf,  -kInf, 1e308, -1e308,
                        1e15, 1e-310, kDenormal, 1e154, 2e154, 1,     3};
  for (int i = 0; i < (kSanitized ? 300 : 900); ++i)
    values.push_back(odd[random.index(std::size(odd))]);
  for (const std::uint32_t dims : {1u, 2u, 3u}) {
    const Points points(dims, values);
    for (const Metric metric : kMetrics)
      for (const double eps : {0.0, 1e-300, 1.0, 1e200, DBL_MAX}) expect_exact(points, metric, eps);
  }
  expect_exact(Points(2, {}), Metric::kL2, 1);
  expect_exact(Points(2, {1, 2}), Metric::kL2, 1);
}

TEST(PartitionedClusters, of_bits_match_brute_force) {
  Random random(3004);
  const Bits rows = random_bits(random, 64, 400, 5).with_ids(shuffled_ids(400));
  for (const bool jaccard : {false, true})
    for (const double eps : jaccard ? std::vector{0.0, 0.3, 1.0} : std::vector{0.0, 2.0, 5.0}) {
      const Oracle oracle =
          jaccard ? jaccard_oracle_of(rows, nullptr, eps) : oracle_of(rows, nullptr, eps);
      for (const std::uint64_t min_points : {1u, 3u, 8u}) {
        const JoinRequest request =
            make_request(rows, nullptr, eps, jaccard ? Metric::kJaccard : Metric::kHamming)
                .asking(Output::clusters(min_points));
        EXPECT_TRUE(matches_oracle(run_join(clusters_in_parts(), request), request, oracle)) << eps;
      }
    }
}

TEST(PartitionedClusters, lack_of_memory_makes_parts_smaller) {
  Random random(3005);
  const Points points =
      Points(2, make_values(Shape::kClustered, random, 900, 2)).with_ids(shuffled_ids(900));
  ClusterParts::rows = 400;
  const Oracle oracle(points, nullptr, Metric::kL2, 2);
  for (const std::uint64_t fitting : {700u, 390u, 60u, 20u}) {
    ClusterParts::rows_that_fit = fitting;
    const JoinRequest request = make_clusters_request(points, Metric::kL2, 2, 4);
    const RunResult result = run_join(clusters_in_parts(), request);
    if (fitting == 20)
      EXPECT_EQ(result.status.code, StatusCode::kMemoryLimit);
    else
      EXPECT_TRUE(matches_oracle(result, request, oracle)) << fitting;
  }
  ClusterParts::rows_that_fit = ~std::uint64_t{0};
  ClusterParts::rows = 100;
}

class ClustersInParts : public EngineTest {};
GPUJOIN_ON_EVERY_ENGINE(ClustersInParts);

bool is_served(const EngineTable& engine, Metric metric, std::uint32_t dims) {
  return !is_device(engine) || (metric != Metric::kCosine && dims <= 8);
}

TEST_P(ClustersInParts, data_in_a_file_has_the_clusters_of_data_in_memory) {
  Random random(3006);
  for (const std::uint32_t dims : {1u, 2u, 6u, 12u})
    for (const Metric metric : kMetrics) {
      if (!is_served(engine(), metric, dims)) continue;
      const Points points = Points(dims, make_values(Shape::kClustered, random, 700, dims),
                                   dims == 2 ? ScalarType::kFloat32 : ScalarType::kFloat64)
                                .with_ids(shuffled_ids(700));
      const double eps = metric == Metric::kCosine ? 0.001 : 2.0 * dims;
      for (const std::uint64_t min_points : {1u, 4u}) {
        MemoryFile file;
        StoredPoints stored(points, 6);
        JoinRequest request = make_clusters_request(points, metric, eps, min_points);
        request.sides = Sides::one(stored.in_file(file), PairSelection::kAll);
        request.resources.scratch = file.functions();
        for (const std::uint64_t limit : {0u, 400u << 10}) {
          // Batches of pairs of tiles have no room in the lower limit, nor has a device's memory.
          if (limit > 0 && (is_device(engine()) || metric == Metric::kCosine)) continue;
          request.resources.memory_limit = limit;
          EXPECT_TRUE(matches_oracle(run_join(engine(), request), request,
                                     Oracle(points, nullptr, metric, eps)))
              << "dims " << dims << " limit " << limit;
        }
      }
    }
}

TEST_P(ClustersInParts, many_points_beyond_the_limit_have_the_clusters_of_memory) {
  Random random(3007);
  const std::uint64_t rows = kSanitized ? 20000 : 100000;
  for (const std::uint32_t dims : {2u, 5u}) {
    std::vector<double> values = make_values(Shape::kUniform, random, rows, dims);
    const Points points = Points(dims, values).with_ids(shuffled_ids(rows));
    const double eps = dims == 2 ? 0.3 : 5;
    for (const std::uint64_t min_points : {1u, 3u, 6u}) {
      JoinRequest request = make_clusters_request(points, Metric::kL2, eps, min_points);
      RunResult whole = run_join(engine(), request);
      ASSERT_EQ(whole.status.code, StatusCode::kEnd) << whole.status.message;
      EXPECT_EQ(whole.stats.parts, 0u);
      if (is_device(engine())) {
        request.resources.device_memory_limit = rows * 200;
      } else {
        request.resources.memory_limit = rows * 60;
      }
      RunResult parts = run_join(engine(), request);
      ASSERT_EQ(parts.status.code, StatusCode::kEnd) << parts.status.message;
      EXPECT_GT(parts.stats.parts, 1u);
      if (!is_device(engine())) {
        EXPECT_LE(parts.stats.memory_peak, rows * 60);
      }
      sort_result(request, &whole);
      sort_result(request, &parts);
      EXPECT_EQ(whole.counts, parts.counts);
    }
  }
}

TEST_P(ClustersInParts, a_file_that_fails_ends_the_join) {
  Random random(3008);
  const Points points(2, make_values(Shape::kUniform, random, 600, 2));
  const std::int64_t before = live_allocations();
  for (const std::uint64_t calls : {0, 5, 21, 23, 25}) {
    MemoryFile file;
    StoredPoints stored(points, 6);
    JoinRequest request = make_clusters_request(points, Metric::kL2, 3, 4);
    request.sides = Sides::one(stored.in_file(file), PairSelection::kAll);
    request.resources.scratch = file.functions();
    file.fail_after(calls);
    EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kCallerFailed) << calls;
  }
  expect_no_leak(engine(), before);
}

TEST_P(ClustersInParts, an_interrupt_is_noticed_and_the_join_goes_on) {
  Random random(3009);
  const Points points(2, make_values(Shape::kUniform, random, 600, 2));
  MemoryFile file;
  StoredPoints stored(points, 6);
  JoinRequest request = make_clusters_request(points, Metric::kL2, 3, 4);
  request.sides = Sides::one(stored.in_file(file), PairSelection::kAll);
  request.resources.scratch = file.functions();
  volatile int interrupt = 1;
  request.resources.interrupt = &interrupt;
  const RunResult result = run_join(engine(), request, &interrupt);
  EXPECT_GT(result.interruptions, 0u);
  request.resources.interrupt = nullptr;
  EXPECT_TRUE(matches_oracle(result, request, Oracle(points, nullptr, Metric::kL2, 3)));
}

}  // namespace
}  // namespace gpujoin::test
