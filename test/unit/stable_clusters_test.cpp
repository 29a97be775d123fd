// StableClusters against the definition, top down: a set of points loses its longest edges, and
// what is left of it is one cluster still, several, or none. Ties, duplicates, forests, sizes.
#include "engine/joins/stable_clusters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "points.h"
#include "trees.h"

namespace gpujoin::test {
namespace {

struct Found {
  std::vector<std::int64_t> clusters;  // by point, -1: noise
  std::vector<double> probabilities;
};

Found find(std::uint64_t points, std::vector<FoundPair> edges, std::uint64_t min_size) {
  MemoryBudget budget(0);
  StableClusters clusters(budget, points, min_size);
  for (const FoundPair& edge : edges) {
    const auto first = static_cast<std::uint32_t>(edge.id1);
    const auto second = static_cast<std::uint32_t>(edge.id2);
    while (!clusters.add(first, second, edge.distance)) {
    }
  }
  while (!clusters.finish()) {
  }
  Found found;
  std::int64_t most = -1;
  for (std::uint32_t point = 0; point < points; ++point) {
    const std::uint32_t cluster = clusters.cluster_of(point);
    found.clusters.push_back(cluster == StableClusters::kNone ? -1 : std::int64_t{cluster});
    found.probabilities.push_back(clusters.probability_of(point));
    EXPECT_LE(found.clusters.back(), most + 1) << "numbered by their first points";
    most = std::max(most, found.clusters.back());
  }
  EXPECT_EQ(most + 1, clusters.clusters());
  return found;
}

void expect_defined(std::uint64_t points, const std::vector<FoundPair>& edges,
                    std::uint64_t min_size) {
  const Found found = find(points, edges, min_size);
  const DefinedClusters defined = define_stable_clusters(points, edges, min_size);
  if (defined.is_close) return;  // rounding may choose
  ASSERT_EQ(found.clusters, defined.clusters);
  for (std::uint64_t point = 0; point < points; ++point)
    ASSERT_NEAR(found.probabilities[point], defined.probabilities[point], 1e-12);
}

/// A random tree, or several, with distances of few kinds or of many.
std::vector<FoundPair> make_forest(Random& random, std::uint64_t points, std::uint64_t kinds,
                                   double gaps) {
  std::vector<FoundPair> edges;
  for (std::uint64_t point = 1; point < points; ++point) {
    if (random.unit() < gaps) continue;
    const std::uint64_t other = random.unit() < 0.7 ? point - 1 : random.index(point);
    const double distance =
        kinds > 0 ? static_cast<double>(random.index(kinds)) : std::exp(random.between(-3, 3));
    edges.push_back({static_cast<std::int64_t>(other), static_cast<std::int64_t>(point), distance});
  }
  std::sort(edges.begin(), edges.end(),
            [](const FoundPair& a, const FoundPair& b) { return a.distance < b.distance; });
  return edges;
}

TEST(StableClusters, are_as_defined) {
  Random random(2201);
  for (int round = 0; round < 400; ++round) {
    const std::uint64_t points = 1 + random.index(150);
    const std::uint64_t kinds = random.pick(std::vector<std::uint64_t>{0, 0, 3, 10, 40});
    const double gaps = random.pick(std::vector<double>{0, 0, 0.05});
    const auto edges = make_forest(random, points, kinds, gaps);
    for (const std::uint64_t min_size : {2u, 3u, 5u, 12u}) expect_defined(points, edges, min_size);
  }
}

TEST(StableClusters, do_not_depend_on_the_order_of_ties) {
  Random random(2202);
  for (int round = 0; round < 100; ++round) {
    auto edges = make_forest(random, 120, 4, 0);
    const Found before = find(120, edges, 4);
    for (std::size_t i = edges.size() - 1; i > 0; --i) {
      const std::size_t j = random.index(i + 1);
      if (edges[i].distance == edges[j].distance) std::swap(edges[i], edges[j]);
    }
    const Found after = find(120, edges, 4);
    ASSERT_EQ(before.clusters, after.clusters);
    ASSERT_EQ(before.probabilities, after.probabilities);
  }
}

TEST(StableClusters, of_two_groups_are_two_and_their_bridge_is_noise) {
  // 0 1 2 3 . . 4 . . 5 6 7 8
  const std::vector<FoundPair> edges = {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}, {5, 6, 1},
                                        {6, 7, 1}, {7, 8, 2}, {3, 4, 3}, {4, 5, 3}};
  const Found found = find(9, edges, 3);
  EXPECT_EQ(found.clusters, (std::vector<std::int64_t>{0, 0, 0, 0, -1, 1, 1, 1, 1}));
  EXPECT_EQ(found.probabilities, (std::vector<double>{1, 1, 1, 1, 0, 1, 1, 1, 0.5}));
}

TEST(StableClusters, of_one_group_are_none) {
  const Found found = find(4, {{0, 1, 1}, {1, 2, 2}, {2, 3, 3}}, 2);
  EXPECT_EQ(found.clusters, (std::vector<std::int64_t>{-1, -1, -1, -1}));
}

TEST(StableClusters, of_places_with_many_points_are_these) {
  std::vector<FoundPair> edges;
  for (std::int64_t point = 1; point < 10; ++point)
    if (point != 5) edges.push_back({point - 1, point, 0});
  edges.push_back({4, 5, 7});
  const Found found = find(10, edges, 5);
  EXPECT_EQ(found.clusters, (std::vector<std::int64_t>{0, 0, 0, 0, 0, 1, 1, 1, 1, 1}));
  EXPECT_EQ(found.probabilities, std::vector<double>(10, 1));
}

/// An interrupt is looked for between pieces: none of them may be all of the work. All edges of one
/// distance are settled at once, and so are clusters that meet.
TEST(StableClusters, of_many_points_come_in_pieces) {
  constexpr std::uint64_t kPoints = 3 * StableClusters::kPiece;
  MemoryBudget budget(0);
  StableClusters clusters(budget, kPoints, 2);
  std::uint64_t waits = 0;
  const auto add = [&](std::uint64_t a, std::uint64_t b, double distance) {
    while (!clusters.add(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), distance))
      ++waits;
    return std::exchange(waits, 0);
  };
  EXPECT_GE(add(0, 1, 1), 2u) << "to prepare the points";
  for (std::uint64_t point = 2; point < kPoints; point += 2)
    EXPECT_EQ(add(point, point + 1, 1), 0u);
  EXPECT_GE(add(0, 2, 2), 2u) << "to settle the pairs";
  for (std::uint64_t point = 2; point + 2 < kPoints; point += 2) add(point, point + 2, 2);
  while (!clusters.finish()) ++waits;
  EXPECT_GE(waits, 6u) << "to end the pairs, and to choose and number them";
  ASSERT_EQ(clusters.clusters(), kPoints / 2);
  for (std::uint64_t point = 0; point < kPoints; point += 4099) {
    EXPECT_EQ(clusters.cluster_of(static_cast<std::uint32_t>(point)), point / 2);
    EXPECT_EQ(clusters.probability_of(static_cast<std::uint32_t>(point)), 1);
  }
}

TEST(StableClusters, of_tiny_and_huge_distances_are_found) {
  for (const double unit : {kDenormal, 1e-300, 1e300}) {
    std::vector<FoundPair> edges;
    for (std::int64_t point = 1; point < 8; ++point)
      if (point != 4) edges.push_back({point - 1, point, unit});
    edges.push_back({3, 4, 8 * unit});
    EXPECT_EQ(find(8, edges, 3).clusters, (std::vector<std::int64_t>{0, 0, 0, 0, 1, 1, 1, 1}));
  }
}

TEST(StableClusters, of_several_trees_may_be_whole_trees) {
  const std::vector<FoundPair> edges = {{0, 1, 1}, {1, 2, 1}, {4, 5, 1}, {5, 6, 1}};
  EXPECT_EQ(find(7, edges, 3).clusters, (std::vector<std::int64_t>{0, 0, 0, -1, 1, 1, 1}));
  EXPECT_EQ(find(4, {}, 2).clusters, (std::vector<std::int64_t>(4, -1)));
  EXPECT_TRUE(find(0, {}, 2).clusters.empty());
}

}  // namespace
}  // namespace gpujoin::test
