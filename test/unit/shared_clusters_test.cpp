// Clusters that several walks find together, each of them some pairs, against labels that spread.

#include "core/shared_clusters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "core/border_rule.h"
#include "core/disjoint_sets.h"
#include "points.h"

namespace gpujoin::test {
namespace {

using Pair = std::pair<std::uint32_t, std::uint32_t>;

/// Places on a line, many of them the same, in groups of neighbouring positions as tiles have them.
struct Line {
  static constexpr std::uint32_t kGroup = 8;

  std::vector<double> places;
  std::vector<std::int64_t> ids;
  double eps = 0;
  std::uint32_t enough = 0;
  BorderRule borders = BorderRule::kNearest;

  std::uint32_t size() const { return static_cast<std::uint32_t>(places.size()); }
  double distance(std::uint32_t p, std::uint32_t q) const {
    return std::fabs(places[p] - places[q]);
  }
  bool are_near(std::uint32_t p, std::uint32_t q) const { return distance(p, q) <= eps; }
  /// Whether a core point comes before another one as the one that a point follows.
  bool is_before(std::uint32_t point, std::uint32_t core, std::uint32_t other) const {
    return is_followed_before(borders, Metric::kL1, {distance(point, core), core},
                              {distance(point, other), other}, ids.data());
  }
};

Line make_line(Random& random) {
  Line line;
  const auto size = static_cast<std::uint32_t>(1 + random.index(90));
  for (std::uint32_t i = 0; i < size; ++i)
    line.places.push_back(static_cast<double>(random.index(1 + random.index(120))));
  if (random.index(2) == 0) std::sort(line.places.begin(), line.places.end());
  line.ids = shuffled_ids(size);
  line.eps = static_cast<double>(random.index(4));
  line.enough = static_cast<std::uint32_t>(1 + random.index(9));
  line.borders = random.index(2) == 0 ? BorderRule::kNearest : BorderRule::kFirst;
  return line;
}

/// What each point is: the first core point of its cluster; of a border point the core point that
/// it follows; of others themselves.
struct Answer {
  std::vector<bool> cores;
  std::vector<std::uint32_t> links;

  bool operator==(const Answer&) const = default;
};

Answer find_alone(const Line& line) {
  Answer answer;
  answer.links.resize(line.size());
  std::iota(answer.links.begin(), answer.links.end(), 0u);
  for (std::uint32_t p = 0; p < line.size(); ++p) {
    std::uint32_t neighbors = 0;
    for (std::uint32_t q = 0; q < line.size(); ++q) neighbors += line.are_near(p, q);
    answer.cores.push_back(neighbors >= line.enough);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t p = 0; p < line.size(); ++p)
      for (std::uint32_t q = 0; q < line.size(); ++q) {
        if (!answer.cores[p] || !answer.cores[q] || !line.are_near(p, q)) continue;
        if (answer.links[q] >= answer.links[p]) continue;
        answer.links[p] = answer.links[q];
        changed = true;
      }
  }
  for (std::uint32_t p = 0; p < line.size(); ++p)
    for (std::uint32_t q = 0; q < line.size() && !answer.cores[p]; ++q)
      if (answer.cores[q] && line.are_near(p, q) &&
          (answer.links[p] == p || line.is_before(p, q, answer.links[p])))
        answer.links[p] = q;
  return answer;
}

/// One of several walks.
struct Walk {
  explicit Walk(const Line& of) : line(of), counts(of.size(), 1), links(of.size()) {
    std::iota(links.begin(), links.end(), 0u);
  }

  /// Pairs whose points have enough neighbours are left out.
  void count(const std::vector<Pair>& pairs) {
    for (const auto& [p, q] : pairs) {
      if (counts[p] >= line.enough && counts[q] >= line.enough) continue;
      if (!line.are_near(p, q)) continue;
      ++counts[p];
      ++counts[q];
    }
  }
  void unite(const std::vector<Pair>& pairs) {
    for (const auto& [p, q] : pairs) {
      if (!line.are_near(p, q)) continue;
      if (is_core(p) && is_core(q)) unite(p, q);
      if (is_core(p) && !is_core(q)) offer(q, p);
      if (is_core(q) && !is_core(p)) offer(p, q);
    }
  }

  // As merge_link() asks for it.
  bool is_core(std::uint32_t point) const { return cores[point]; }
  void unite(std::uint32_t a, std::uint32_t b) const { DisjointSets(links.data()).unite(a, b); }
  void offer(std::uint32_t point, std::uint32_t core) const {
    if (links[point] == point || line.is_before(point, core, links[point])) links[point] = core;
  }

  const Line& line;
  std::vector<std::uint32_t> counts;
  std::vector<bool> cores;
  mutable std::vector<std::uint32_t> links;
};

/// Each walk looks at the pairs of each group, and at its share of the others.
Answer find_together(const Line& line, std::size_t walks, Random& random) {
  std::vector<Pair> common;
  std::vector<std::vector<Pair>> shares(walks);
  for (std::uint32_t p = 0; p < line.size(); ++p)
    for (std::uint32_t q = p + 1; q < line.size(); ++q)
      (p / Line::kGroup == q / Line::kGroup ? common : shares[random.index(walks)])
          .emplace_back(p, q);
  std::vector<Walk> all(walks, Walk(line));
  std::vector<std::uint32_t> sum(line.size(), 0);
  for (std::size_t w = 0; w < walks; ++w) {
    all[w].count(common);
    const std::vector<std::uint32_t> before =
        w > 0 ? all[w].counts : std::vector<std::uint32_t>(line.size(), 0);
    all[w].count(shares[w]);
    for (std::uint32_t p = 0; p < line.size(); ++p)
      sum[p] += neighbors_to_add(all[w].counts[p], before[p]);
  }
  for (Walk& walk : all) {
    for (const std::uint32_t neighbors : sum) walk.cores.push_back(neighbors >= line.enough);
    walk.unite(common);
    walk.unite(shares[static_cast<std::size_t>(&walk - all.data())]);
  }
  for (std::size_t w = 1; w < walks; ++w)
    for (std::uint32_t p = 0; p < line.size(); ++p) merge_link(all[0], p, all[w].links[p]);
  Answer answer{all[0].cores, all[0].links};
  for (std::uint32_t p = 0; p < line.size(); ++p)
    if (answer.cores[p]) answer.links[p] = DisjointSets(all[0].links.data()).root(p);
  return answer;
}

TEST(SharedClusters, walks_find_together_what_one_finds_alone) {
  Random random(951);
  for (int round = 0; round < 2000; ++round) {
    const Line line = make_line(random);
    const Answer alone = find_alone(line);
    for (const std::size_t walks : {1u, 2u, 3u, 5u})
      ASSERT_EQ(find_together(line, walks, random), alone) << "round " << round << ", " << walks;
  }
}

}  // namespace
}  // namespace gpujoin::test
