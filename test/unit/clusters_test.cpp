// Clusters of rows against brute force: every metric, few and many dimensions, places so dense that
// pairs are not looked at, border rows between clusters, ties, points that are no numbers.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "allocation_hooks.h"
#include "core/cluster.h"
#include "engine_harness.h"
#include "points.h"

namespace gpujoin::test {
namespace {

class Clusters : public EngineTest {};

/// A device has cells of few columns, and tiles for distances that a screen of L2 knows.
bool is_served(const EngineTable& engine, Metric metric, std::uint32_t dims) {
  return !is_device(engine) || metric == Metric::kL2 || metric == Metric::kCosine || dims <= 8;
}

JoinRequest make_clusters_request(const Points& points, Metric metric, double eps,
                                  std::uint64_t min_points,
                                  BorderRule borders = BorderRule::kNearest) {
  return make_request(points, nullptr, metric, eps).asking(Output::clusters(min_points, borders));
}

/// The points and so many more, at one place far from them, that comparing these takes too long.
Points with_more_points(const Points& points) {
  const auto more_rows = static_cast<std::uint64_t>(std::sqrt((1 << 19) / points.dims())) + 2;
  const Dataset data = points.view();
  std::vector<double> values;
  std::vector<std::int64_t> ids;
  for (std::uint64_t row = 0; row < points.rows() + more_rows; ++row) {
    const bool more = row >= points.rows();
    for (std::uint32_t d = 0; d < points.dims(); ++d)
      values.push_back(more ? 1e4 + d : coordinate(data, row, d));
    ids.push_back(more ? static_cast<std::int64_t>(1000000 + row) : points.id(row));
  }
  return Points(points.dims(), values, points.scalar()).with_ids(ids);
}

void expect_exact_as_is(const EngineTable& engine, const Points& points, Metric metric,
                        double eps) {
  if (points.rows() > 0 && !is_served(engine, metric, points.dims())) {
    const JoinRequest request = make_clusters_request(points, metric, eps, 2);
    EXPECT_EQ(run_join(engine, request).status.code, StatusCode::kUnavailable);
    return;
  }
  const Oracle oracle(points, nullptr, metric, eps);
  const auto check = [&](std::uint64_t min_points, BorderRule borders) {
    const JoinRequest request = make_clusters_request(points, metric, eps, min_points, borders);
    EXPECT_TRUE(matches_oracle(run_join(engine, request), request, oracle))
        << "min_points " << min_points << " dims " << points.dims();
  };
  for (const std::uint64_t min_points : {1u, 2u, 3u, 5u, 20u, 100000u})
    check(min_points, BorderRule::kNearest);
  for (const std::uint64_t min_points : {3u, 5u}) check(min_points, BorderRule::kFirst);
}

/// Few points are compared on the spot; with more of them an index is built.
void expect_exact(const EngineTable& engine, const Points& points, Metric metric, double eps) {
  expect_exact_as_is(engine, points, metric, eps);
  if (points.rows() > 0 && points.rows() < 400)
    expect_exact_as_is(engine, with_more_points(points), metric, eps);
}

TEST_P(Clusters, match_brute_force_in_every_shape_and_metric) {
  Random random(901);
  constexpr std::uint64_t kRows = 300;
  std::uint64_t turn = 0;
  for (const Shape shape : kShapes)
    for (const std::uint32_t dims : {1u, 2u, 3u, 4u, 9u, 20u}) {
      const ScalarType scalar = dims % 2 == 0 ? ScalarType::kFloat32 : ScalarType::kFloat64;
      const Points points = Points(dims, make_values(shape, random, kRows, dims), scalar)
                                .with_ids(shuffled_ids(kRows));
      for (const Metric metric : kMetrics) {
        // Radii with some neighbours, in turns: of some row to its 2nd, 6th and 40th nearest.
        const std::vector<double> distances = distances_of_a_row(points, metric);
        if (distances.size() < 40) continue;
        const double eps = distances[std::array{1, 5, 39}[turn++ % 3]];
        if (!kSanitized || turn % 5 < 3) expect_exact(engine(), points, metric, eps);
      }
    }
}

/// Noise, groups, rows that are the same, a place where all are neighbours, and odd values.
std::vector<double> mixed_values(Random& random, std::uint64_t rows, std::uint32_t dims) {
  const std::vector<double> odd = {0, -0.0, kNan, kInf, -kInf, 1e-310, 1e160};
  std::vector<double> centers(4 * std::size_t{dims}), values;
  for (double& x : centers) x = random.between(-10, 10);
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t kind = random.index(10), group = random.index(3);
    const std::uint64_t other = row > 0 ? random.index(row) : 0;
    const double all = random.pick(odd);
    for (std::uint32_t d = 0; d < dims; ++d) {
      if (kind < 3 || (kind == 9 && random.index(20) != 0))
        values.push_back(random.between(-12, 12));
      else if (kind < 6)
        values.push_back(centers[group * dims + d] + random.between(-1, 1) * random.unit());
      else if (kind < 7)
        values.push_back(row > 0 ? values[other * dims + d] : 0);
      else if (kind < 9)
        values.push_back(centers[3 * std::size_t{dims} + d] + 1e-3 * random.between(-1, 1));
      else
        values.push_back(row % 3 == 0 ? all : random.pick(odd));
    }
    if (row % 97 == 5) std::fill(values.end() - dims, values.end(), all);
  }
  return values;
}

/// Radii within which the first row that has a distance to all others has few rows, some, and most.
std::vector<double> telling_radii(const Oracle& all, std::uint64_t rows) {
  std::map<std::int64_t, std::vector<double>> of_row;
  for (const FoundPair& pair : all.nearest(rows, PairSelection::kDistinct))
    of_row[pair.id1].push_back(pair.distance);
  const std::vector<double>* longest = nullptr;
  for (auto& [id, distances] : of_row)
    if (longest == nullptr || distances.size() > longest->size()) longest = &distances;
  if (longest == nullptr) return {1};
  std::vector<double> sorted = *longest, radii = {0};
  std::sort(sorted.begin(), sorted.end());
  for (const double share : {0.02, 0.15, 0.6})
    radii.push_back(sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size()))]);
  return radii;
}

TEST_P(Clusters, of_many_columns_and_of_directions_match_brute_force) {
  Random random(908);
  const std::map<std::uint32_t, std::vector<std::uint64_t>> sizes = {
      {2, {129, 700}},   {9, {127, 128, 300}}, {16, {257, 700}},
      {33, {1, 2, 384}}, {100, {500}},         {800, {140}}};
  for (const auto& [dims, all_rows] : sizes)
    for (const std::uint64_t rows : all_rows) {
      const ScalarType scalar = random.index(2) ? ScalarType::kFloat32 : ScalarType::kFloat64;
      const Points points =
          Points(dims, mixed_values(random, rows, dims), scalar).with_ids(shuffled_ids(rows));
      for (const Metric metric : {Metric::kL2, Metric::kCosine}) {
        const Oracle all(points, nullptr, metric, DBL_MAX);
        for (const double eps : telling_radii(all, rows)) {
          const Oracle oracle(points, nullptr, metric, eps);
          for (const std::uint64_t min_points : {1u, 2u, 4u, 10u, 40u, 1000u})
            for (const BorderRule borders : {BorderRule::kNearest, BorderRule::kFirst}) {
              const JoinRequest request =
                  make_clusters_request(points, metric, eps, min_points, borders);
              ASSERT_TRUE(matches_oracle(run_join(engine(), request), request, oracle))
                  << "min_points " << min_points << " dims " << dims << " rows " << rows;
            }
        }
      }
    }
}

TEST_P(Clusters, points_exactly_eps_apart_are_neighbors) {
  for (const std::uint32_t dims : {1u, 2u, 3u, 5u}) {
    std::vector<double> values;
    for (int i = 0; i < 200; ++i)
      for (std::uint32_t d = 0; d < dims; ++d) values.push_back(d == 0 ? 0.1 * i : 0.3);
    for (const double eps : {0.1, below(0.1), above(0.1), 0.2, 0.1 * 3})
      for (const Metric metric : {Metric::kL2, Metric::kL1, Metric::kLInf})
        expect_exact(engine(), Points(dims, values), metric, eps);
  }
}

TEST_P(Clusters, border_rows_follow_the_nearest_core_row_or_that_of_the_smallest_id) {
  // Two groups of four at distance 2, and rows between them.
  for (const std::uint32_t dims : {1u, 2u, 4u}) {
    std::vector<double> values;
    const auto add = [&](double x) {
      for (std::uint32_t d = 0; d < dims; ++d) values.push_back(d == 0 ? x : 0);
    };
    for (const double x : {0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 1.0, -1.0, 3.0, 1.0, 1.25, 0.75}) add(x);
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<std::int64_t> ids = shuffled_ids(12);
      if (turn == 1) std::reverse(ids.begin(), ids.end());
      const Points points = Points(dims, values).with_ids(ids);
      for (const std::uint64_t min_points : {4u, 5u, 6u, 7u}) {
        for (const Points& some : {points, with_more_points(points)}) {
          for (const BorderRule borders : {BorderRule::kNearest, BorderRule::kFirst}) {
            const JoinRequest request =
                make_clusters_request(some, Metric::kL2, 1, min_points, borders);
            EXPECT_TRUE(matches_oracle(run_join(engine(), request), request,
                                       Oracle(some, nullptr, Metric::kL2, 1)));
          }
        }
      }
    }
  }
}

TEST_P(Clusters, duplicates_and_dense_places) {
  Random random(902);
  for (const std::uint32_t dims : {1u, 2u, 3u, 4u, 12u}) {
    std::vector<double> values;
    const auto add = [&](int rows, double center, double spread) {
      for (int i = 0; i < rows; ++i)
        for (std::uint32_t d = 0; d < dims; ++d)
          values.push_back(center + spread * random.between(-1, 1));
    };
    add(300, 0, 0);     // equal
    add(300, 3, 0.01);  // all of them neighbours
    add(300, 6, 1);
    add(100, 0.99, 0);  // equal, and near the first
    add(60, 4, 8);
    const Points points = Points(dims, values).with_ids(shuffled_ids(1060));
    for (const Metric metric : kMetrics)
      for (const double eps : {0.0, 0.02, 1.0, 2.5}) expect_exact(engine(), points, metric, eps);
  }
}

TEST_P(Clusters, numbers_that_are_none_or_huge_or_tiny) {
  const double inf = INFINITY, nan = NAN;
  const std::vector<double> odd = {
      0,       0,      nan, 1,     inf,   1,     -inf,   inf, 1e308, 1e308, -1e308, 1e308, 1e-310,
      -1e-310, 5e-324, 0,   1e154, 1e154, 2e154, -1e154, 1,   1,     -0.0,  0.0,    3,     4};
  for (const std::uint32_t dims : {1u, 2u, 13u}) {
    const Points points(dims, odd);
    for (const Metric metric : kMetrics)
      for (const double eps : {0.0, 1e-300, 1.0, 1e200, DBL_MAX})
        expect_exact(engine(), points, metric, eps);
  }
  expect_exact(engine(), Points(2, {}), Metric::kL2, 1);
  expect_exact(engine(), Points(2, {1, 2}), Metric::kCosine, 1);
  expect_exact(engine(), Points(2, {0, 0, 0, 0}), Metric::kCosine, 0);
}

TEST_P(Clusters, outliers_leave_the_rest_in_cells) {
  Random random(903);
  std::vector<double> values = make_values(Shape::kUniform, random, 400, 2);
  for (const double x : {1e300, -1e300, 1e15, 1e5}) {
    values.push_back(x);
    values.push_back(-x / 3);
  }
  expect_exact(engine(), Points(2, values), Metric::kL2, 4);
}

TEST_P(Clusters, many_equal_rows_take_no_quadratic_time) {
  constexpr std::uint64_t kRows = kSanitized ? 5000 : 60000;
  for (const std::uint32_t dims : {2u, 6u})
    for (const Metric metric : kMetrics) {
      if (!is_served(engine(), metric, dims)) continue;
      const Points points(dims, std::vector<double>(kRows * dims, 2.5));
      const JoinRequest request = make_clusters_request(points, metric, 0.5, 7);
      const RunResult result = run_join(engine(), request);
      ASSERT_EQ(result.counts.size(), kRows);
      for (const RowCount& row : result.counts)
        ASSERT_EQ(row.count, pack_cluster({ClusterRole::kCore, 0}));
      EXPECT_LT(result.stats.candidates, kRows * 2000) << "dims " << dims;
    }
}

/// Whatever rounding leaves open: with a radius of 0 a screen decides no pair.
TEST_P(Clusters, many_equal_rows_of_many_columns_take_no_quadratic_time) {
  constexpr std::uint64_t kRows = kSanitized ? 2000 : 12000;
  for (const std::uint32_t dims : {12u, 96u})
    for (const Metric metric : {Metric::kL2, Metric::kCosine})
      for (const double eps : {0.0, 0.5}) {
        std::vector<double> values(kRows * dims, 2.5);
        for (std::uint64_t row = 1; row < kRows; row += 2) values[row * dims] = -4;
        const Points points(dims, values);
        // Of one direction rounding leaves no distance of 0 in all cases.
        const bool exact = metric == Metric::kL2 || eps > 0;
        const JoinRequest request = make_clusters_request(points, metric, eps, 7);
        const RunResult result = run_join(engine(), request);
        ASSERT_EQ(result.counts.size(), kRows) << result.status.message;
        for (std::uint64_t row = 0; exact && row < kRows; ++row)
          ASSERT_EQ(result.counts[row].count,
                    pack_cluster({ClusterRole::kCore, metric == Metric::kL2 ? row % 2 : 0}));
        if (exact) {
          EXPECT_LT(result.stats.rechecked, kRows * 1000) << dims << " " << eps;
        }
      }
}

class ClustersOnDevices : public Clusters {};
GPUJOIN_ON_DEVICES(ClustersOnDevices);

TEST_P(ClustersOnDevices, are_those_of_the_host_in_large_joins_and_in_little_memory) {
  Random random(909);
  constexpr std::uint64_t kRows = 24000;
  for (const std::uint32_t dims : {2u, 12u, 24u}) {
    std::vector<double> values = mixed_values(random, kRows, dims);
    const Points points =
        Points(dims, values, dims == 12 ? ScalarType::kFloat64 : ScalarType::kFloat32)
            .with_ids(shuffled_ids(kRows));
    for (const Metric metric : {Metric::kL2, Metric::kCosine})
      for (const double eps : metric == Metric::kL2 ? std::vector<double>{0.002, 1, 2.2, 9}
                                                    : std::vector<double>{1e-7, 0.002, 0.05})
        for (const std::uint64_t min_points : {1u, 5u, 40u, 3000u}) {
          JoinRequest request = make_clusters_request(points, metric, eps, min_points);
          const RunResult expected = run_join(*cpu_engine(), request);
          ASSERT_EQ(expected.status.code, StatusCode::kEnd);
          for (const std::uint64_t limit : {0u, 32u << 20}) {
            request.resources.device_memory_limit = limit;
            const RunResult result = run_join(engine(), request);
            ASSERT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
            ASSERT_EQ(result.counts, expected.counts) << dims << " columns, eps " << eps << ", "
                                                      << min_points << " points, limit " << limit;
          }
        }
  }
}

/// Three columns leave an eighth of the rows in a cell, where a tile's five leave less.
TEST_P(ClustersOnDevices, of_cells_that_would_hold_much_go_by_tiles) {
  Random random(919);
  constexpr std::uint64_t kRows = 150000;
  for (const std::uint32_t dims : {6u, 8u}) {
    std::vector<double> values;
    for (std::uint64_t i = 0; i < kRows * dims; ++i)
      values.push_back((random.index(2) == 0 ? 0 : 100) + random.unit());
    const Points points(dims, values, ScalarType::kFloat32);
    const JoinRequest request = make_clusters_request(points, Metric::kL2, 0.5, 5);
    const RunResult expected = run_join(*cpu_engine(), request);
    ASSERT_EQ(expected.status.code, StatusCode::kEnd);
    const RunResult result = run_join(engine(), request);
    EXPECT_EQ(result.stats.strategy.index, IndexMethod::kTiles);
    EXPECT_EQ(result.counts, expected.counts) << dims << " columns";
  }
}

/// Points for clusters by tiles, with radii that tell: half of them of L2 distances, the others of
/// cosine distances.
struct TileSet {
  std::string name;
  std::vector<double> values;
  std::vector<double> radii;
};

std::vector<TileSet> tile_sets(Random& random, std::uint64_t rows, std::uint32_t dims) {
  const double spread = std::sqrt(static_cast<double>(dims));
  std::vector<double> blob, twins;
  for (std::uint64_t i = 0; i < rows * dims; ++i) blob.push_back(random.between(1, 2));
  for (std::uint64_t row = 0; row < rows; ++row)
    for (std::uint32_t d = 0; d < dims; ++d) twins.push_back(row % 3 == d % 3 ? 2.5 : -4);
  return {{"mixed", mixed_values(random, rows, dims), {0.3 * spread, 2 * spread, 0.002, 0.3}},
          {"groups",
           make_values(Shape::kClustered, random, rows, dims),
           {0.3 * spread, 0.6 * spread, 1e-4, 0.01}},
          {"noise", make_values(Shape::kUniform, random, rows, dims), {0.1, 1e-9}},
          {"blob", blob, {0.2 * spread, 2 * spread, 0.03, 0.5}},
          {"twins", twins, {0, 1e-6}}};
}

/// Each device has a part of the distances.
void expect_shares(const JoinStats& stats, std::uint32_t devices) {
  ASSERT_EQ(stats.devices, devices);
  std::uint64_t candidates = 0;
  for (std::uint32_t d = 0; d < devices; ++d) {
    EXPECT_GT(stats.shares[d].candidates, 0u);
    candidates += stats.shares[d].candidates;
  }
  EXPECT_EQ(stats.candidates, candidates);
}

/// Shares of one device do as well as several devices.
TEST_P(ClustersOnDevices, that_several_devices_share_are_those_of_the_host) {
  Random random(910);
  const std::map<std::uint32_t, std::vector<std::uint64_t>> sizes = {
      {12, {128, 129, 257, 2000}}, {60, {384, 1500}}, {768, {900}}};
  const auto check = [&](const TileSet& set, const Points& points, Metric metric, double eps,
                         std::uint64_t min_points, BorderRule borders) {
    JoinRequest request = make_clusters_request(points, metric, eps, min_points, borders);
    const RunResult expected = run_join(*cpu_engine(), request);
    ASSERT_EQ(expected.status.code, StatusCode::kEnd);
    request.knobs.share_devices = Switch::kOn;
    for (const std::uint32_t devices : {2u, 3u}) {
      request.resources.devices.count = devices;  // all are number 0
      const RunResult result = run_join(engine(), request);
      ASSERT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
      ASSERT_EQ(result.counts, expected.counts)
          << set.name << ", " << points.rows() << " rows, " << points.dims() << " columns, metric "
          << static_cast<int>(metric) << ", eps " << eps << ", " << min_points << " points, "
          << devices << " devices";
      if (points.rows() > 1000) expect_shares(result.stats, devices);
    }
  };
  for (const auto& [dims, all_rows] : sizes)
    for (const std::uint64_t rows : all_rows)
      for (const TileSet& set : tile_sets(random, rows, dims)) {
        const ScalarType scalar = rows % 2 == 0 ? ScalarType::kFloat32 : ScalarType::kFloat64;
        const Points points = Points(dims, set.values, scalar).with_ids(shuffled_ids(rows));
        for (std::size_t at = 0; at < set.radii.size(); ++at) {
          const Metric metric = 2 * at < set.radii.size() ? Metric::kL2 : Metric::kCosine;
          for (const std::uint64_t min_points : {1u, 2u, 5u, 60u, 100000u})
            check(set, points, metric, set.radii[at], min_points, BorderRule::kNearest);
          check(set, points, metric, set.radii[at], 5, BorderRule::kFirst);
          if (HasFatalFailure()) return;
        }
      }
}

TEST_P(Clusters, several_threads_find_the_clusters_of_many_points) {
  Random random(904);
  const std::uint64_t rows = kSanitized ? 2100 : 3000;  // more than one thread serves
  const std::map<std::uint32_t, std::vector<double>> radii = {
      {2, {1.5, 4, 12}}, {3, {4, 8, 20}}, {5, {12, 20}}};
  for (const auto& [dims, all_eps] : radii) {
    const Points points(dims, make_values(Shape::kUniform, random, rows, dims),
                        dims == 3 ? ScalarType::kFloat32 : ScalarType::kFloat64);
    for (const double eps : all_eps) {
      JoinRequest request = make_clusters_request(points, Metric::kL2, eps, 5);
      request.resources.threads = 4;
      EXPECT_TRUE(matches_oracle(run_join(engine(), request), request,
                                 Oracle(points, nullptr, Metric::kL2, eps)));
    }
  }
}

TEST_P(Clusters, memory_arguments_and_sides_are_checked) {
  Random random(905);
  const Points points(2, make_values(Shape::kUniform, random, 5000, 2));
  JoinRequest request = make_clusters_request(points, Metric::kL2, 1, 3);
  request.resources.memory_limit = 1000;
  EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kMemoryLimit);
  request.resources.memory_limit = 0;
  EXPECT_EQ(run_join(engine(), request.asking(Output::clusters(0))).status.code,
            StatusCode::kInvalidArgument);
  EXPECT_EQ(
      run_join(engine(), make_request(points, &points, Metric::kL2, 1).asking(Output::clusters(3)))
          .status.code,
      StatusCode::kInvalidArgument);
}

/// Points whose keys divide them.
struct DividedPoints {
  Points points;
  std::vector<double> keys;

  Dataset view() const {
    Dataset data = points.view();
    data.keys = keys.data();
    data.key_columns = 1;
    return data;
  }
};

JoinRequest make_divided_request(const DividedPoints& divided, Metric metric, double eps,
                                 std::uint64_t min_points, double most) {
  JoinRequest request = make_clusters_request(divided.points, metric, eps, min_points);
  request.sides = Sides::one(divided.view(), PairSelection::kAll);
  request.keys = {1, {0}, {most}};
  return request;
}

/// The clusters of each key's rows by themselves; rows whose key is NaN are alone.
std::vector<RowCount> clusters_by_key(const DividedPoints& divided,
                                      const std::vector<double>& values, Metric metric, double eps,
                                      std::uint64_t min_points) {
  const Points& points = divided.points;
  std::map<std::pair<double, std::uint64_t>, std::vector<std::uint64_t>> groups;
  for (std::uint64_t row = 0; row < points.rows(); ++row) {
    const double key = divided.keys[row];
    groups[std::isnan(key) ? std::pair(-1.0, row) : std::pair(key, std::uint64_t{0})].push_back(
        row);
  }
  std::vector<RowCount> found;
  for (const auto& [key, rows] : groups) {
    std::vector<double> some;
    std::vector<std::int64_t> ids;
    for (const std::uint64_t row : rows) {
      some.insert(some.end(), values.begin() + static_cast<std::ptrdiff_t>(row * points.dims()),
                  values.begin() + static_cast<std::ptrdiff_t>((row + 1) * points.dims()));
      ids.push_back(points.id(row));
    }
    const Points part = Points(points.dims(), some, points.scalar()).with_ids(ids);
    const std::vector<RowCount> clusters = Oracle(part, nullptr, metric, eps).clusters(min_points);
    found.insert(found.end(), clusters.begin(), clusters.end());
  }
  std::sort(found.begin(), found.end(),
            [](const RowCount& a, const RowCount& b) { return a.id < b.id; });
  return found;
}

TEST_P(Clusters, rows_of_different_keys_are_never_neighbors) {
  Random random(907);
  constexpr std::uint64_t kRows = 240;
  for (const std::uint32_t dims : {1u, 2u, 5u, 12u})
    for (const double most : {0.0, 2.0, 400.0}) {
      const std::vector<double> values = make_values(Shape::kClustered, random, kRows, dims);
      const ScalarType scalar = dims == 2 ? ScalarType::kFloat32 : ScalarType::kFloat64;
      DividedPoints divided{Points(dims, values, scalar).with_ids(shuffled_ids(kRows)), {}};
      for (std::uint64_t row = 0; row < kRows; ++row)
        divided.keys.push_back(row % 50 == 7 ? kNan
                                             : static_cast<double>(random.index(
                                                   static_cast<std::uint64_t>(most) + 1)));
      for (const Metric metric : kMetrics) {
        if (!is_served(engine(), metric, dims)) continue;
        const double eps = metric == Metric::kCosine ? 0.001 : 3;
        for (const std::uint64_t min_points : {1u, 4u}) {
          const RunResult result =
              run_join(engine(), make_divided_request(divided, metric, eps, min_points, most));
          ASSERT_EQ(result.status.code, StatusCode::kEnd) << result.status.message;
          EXPECT_EQ(result.counts, clusters_by_key(divided, values, metric, eps, min_points))
              << "dims " << dims << ", keys up to " << most;
          EXPECT_EQ(result.stats.left_rows, kRows);
        }
      }
    }
}

TEST_P(Clusters, keys_are_one_equality) {
  DividedPoints divided{Points(1, {1, 2, 3}), {0, 1, 1}};
  JoinRequest request = make_divided_request(divided, Metric::kL2, 1, 2, 1);
  EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kEnd);
  request.resources.memory_limit = 10;
  EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kMemoryLimit);
  request.resources.memory_limit = 0;
  request.keys.reach[0] = 1;
  EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kInvalidArgument);
  request.keys = {1, {0}, {1e300}};
  EXPECT_EQ(run_join(engine(), request).status.code, StatusCode::kInvalidArgument);
}

TEST_P(Clusters, can_be_left_at_any_time) {
  Random random(906);
  for (const std::uint32_t dims : {2u, 20u}) {
    const Points points(dims, make_values(Shape::kUniform, random, 20000, dims));
    const std::int64_t before = live_allocations();
    for (const Metric metric : {Metric::kL2, Metric::kCosine}) {
      JoinRequest request = make_clusters_request(points, metric, 5, 10);
      for (int batches = 0; batches < 3; ++batches) {
        request.knobs.batch_pairs = 100;
        Join* join = nullptr;
        ASSERT_TRUE(engine().open(&request, &join).ok());
        ResultBatch batch{};
        for (int i = 0; i < batches; ++i) ASSERT_TRUE(engine().next_batch(join, &batch).ok());
        engine().close(join);
      }
    }
    expect_no_leak(engine(), before);
  }
}

GPUJOIN_ON_EVERY_ENGINE(Clusters);

}  // namespace
}  // namespace gpujoin::test
