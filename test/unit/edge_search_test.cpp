// Core distances and rounds of first edges in a tree of boxes, as the device has them, against
// Prim's tree.

#include "core/edge_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "host_tree.h"
#include "trees.h"

namespace gpujoin::test {
namespace {

constexpr std::uint32_t kLeafPoints = 5;

/// A board as several threads share it: what others have found is seen at some time, early or late.
struct Board {
  double& first;
  Random& random;
  std::uint64_t& candidates;
  double known = DBL_MAX;

  double bound() {
    if (random.index(3) == 0) known = first;
    return known;
  }
  void offer(double distance) {
    first = std::min(first, distance);
    known = std::min(known, distance);
  }
  bool goes_on(std::uint32_t points) {
    candidates += points;
    return true;
  }
};

/// Finds a tree as the kernels do (cuda/spanning/spanning_kernels.cu), one point after another.
template <Metric M, std::uint32_t D>
class Rounds {
 public:
  Rounds(const std::vector<double>& values, std::uint32_t dims, std::uint64_t min_points,
         const std::vector<std::int64_t>& ids, Random& random)
      : host_(values, dims, D > 0 ? D : dims, kLeafPoints),
        points_(host_.tree.points),
        ranks_(points_),
        positions_(points_),
        cores_(points_),
        distances_(points_),
        least_(points_),
        first_distances_(points_),
        ends_(points_),
        first_ends_(points_),
        proven_(points_),
        components_(points_),
        facts_(2 * host_.tree.leaves()),
        random_(random) {
    std::iota(positions_.begin(), positions_.end(), 0u);
    std::sort(positions_.begin(), positions_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return ids[host_.order[a]] < ids[host_.order[b]];
    });
    for (std::uint32_t rank = 0; rank < points_; ++rank) ranks_[positions_[rank]] = rank;
    table_.points = {host_.tree,        M, facts_.data(), cores_.data(), ranks_.data(),
                     components_.data()};
    table_.positions = positions_.data();
    table_.distances = distances_.data();
    table_.ends = ends_.data();
    table_.proven = proven_.data();
    table_.least = least_.data();
    table_.first_distances = first_distances_.data();
    table_.first_ends = first_ends_.data();
    find_cores(min_points);
    while (round()) ++rounds_;
    std::sort(edges_.begin(), edges_.end());
  }

  const std::vector<TreeEdge>& edges() const { return edges_; }
  std::int64_t id(std::uint32_t rank, const std::vector<std::int64_t>& ids) const {
    return ids[host_.order[positions_[rank]]];
  }
  std::uint64_t candidates() const { return candidates_; }
  std::uint32_t rounds() const { return rounds_; }

 private:
  void find_cores(std::uint64_t min_points) {
    const auto goes_on = [this](std::uint32_t points) {
      candidates_ += points;
      return true;
    };
    std::vector<double> numbers(min_points);
    for (std::uint32_t p = 0; p < points_; ++p) {
      components_[p] = p;
      if (min_points > 1) {
        CoreTaker taker(numbers.data(), static_cast<std::uint32_t>(min_points - 1), p, goes_on);
        search_box_tree<M, D>(host_.tree, host_.tree.point(p), taker);
        cores_[p] = distance_from_raw(M, taker.raw());
      }
      table_.begin(p);
    }
  }

  void find_facts() {
    const BoxTree& tree = host_.tree;
    for (std::uint32_t node = 2 * tree.leaves() - 1; node > 0; --node) {
      if (node < tree.leaves()) {
        facts_[node] = together(facts_[2 * node], facts_[2 * node + 1]);
        continue;
      }
      facts_[node] = no_facts();
      const std::uint32_t leaf = node - tree.leaves();
      for (std::uint32_t p = tree.begin(leaf); p < tree.begin(leaf + 1); ++p)
        if (table_.has_core(p))
          facts_[node] = together(facts_[node], {cores_[p], ranks_[p], components_[p]});
    }
  }

  bool round() {
    std::fill(first_distances_.begin(), first_distances_.end(), kNoTreeEdge.distance);
    std::fill(first_ends_.begin(), first_ends_.end(), kNoTreeEdge.ends);
    find_facts();
    std::vector<std::uint32_t> open;
    for (std::uint32_t p = 0; p < points_; ++p)
      if (table_.offers(p)) lower(first_distances_[components_[p]], distances_[p]);
    for (std::uint32_t p = 0; p < points_; ++p)
      if (table_.is_open(p)) open.push_back(p);
    for (std::size_t i = open.size(); i > 1; --i) std::swap(open[i - 1], open[random_.index(i)]);
    for (const std::uint32_t p : open) {
      Board board{first_distances_[components_[p]], random_, candidates_};
      table_.keep(p, find_first_edge<M, D>(table_.points, p, host_.tree.point(p), board));
    }
    for (std::uint32_t p = 0; p < points_; ++p)
      if (table_.is_as_short(p)) lower(first_ends_[components_[p]], ends_[p]);
    return merge();
  }

  bool merge() {
    const std::size_t before = edges_.size();
    for (std::uint32_t component = 0; component < points_; ++component) {
      const TreeEdge edge{first_distances_[component], first_ends_[component]};
      if (edge.ends == kNoTreeEdge.ends) continue;
      const std::uint32_t a = components_[positions_[edge.first()]];
      const std::uint32_t b = components_[positions_[edge.second()]];
      if (links_.count({std::min(a, b), std::max(a, b)}) > 0) continue;
      links_[{std::min(a, b), std::max(a, b)}] = true;
      edges_.push_back(edge);
    }
    links_.clear();
    // Components named by their first points, slowly.
    for (std::size_t i = before; i < edges_.size(); ++i) {
      const std::uint32_t a = components_[positions_[edges_[i].first()]];
      const std::uint32_t b = components_[positions_[edges_[i].second()]];
      EXPECT_NE(a, b) << "edges close a circle";
      for (std::uint32_t& component : components_)
        if (component == std::max(a, b)) component = std::min(a, b);
    }
    return edges_.size() > before;
  }

  template <class T>
  static void lower(T& x, T y) {
    x = std::min(x, y);
  }

  HostTree host_;
  std::uint32_t points_;
  std::vector<std::uint32_t> ranks_, positions_;
  std::vector<double> cores_, distances_, least_, first_distances_;
  std::vector<std::uint64_t> ends_, first_ends_;
  std::vector<std::uint8_t> proven_;
  std::vector<std::uint32_t> components_;
  std::vector<NodeFacts> facts_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, bool> links_;
  EdgeTable table_{};
  std::vector<TreeEdge> edges_;
  Random& random_;
  std::uint64_t candidates_ = 0;
  std::uint32_t rounds_ = 0;
};

template <Metric M, std::uint32_t D>
void expect_tree(const std::vector<double>& values, std::uint32_t dims, std::uint64_t min_points,
                 Random& random) {
  const std::vector<std::int64_t> ids = shuffled_ids(values.size() / dims);
  const Rounds<M, D> found(values, dims, min_points, ids, random);
  const Points points = Points(dims, values).with_ids(ids);
  const std::vector<FoundPair> expected = define_tree(points, M, min_points);
  ASSERT_EQ(found.edges().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const TreeEdge& edge = found.edges()[i];
    ASSERT_EQ((FoundPair{found.id(edge.first(), ids), found.id(edge.second(), ids), edge.distance}),
              expected[i])
        << "edge " << i << ", " << dims << " columns, " << min_points << " points";
  }
}

TEST(EdgeSearch, makes_prims_tree) {
  Random random(2401);
  for (const Shape shape : kShapes)
    for (const std::uint32_t dims : {1u, 2u, 3u, 7u})
      for (const std::uint64_t rows : {1u, 2u, 7u, 90u, 260u}) {
        std::vector<double> values = make_values(shape, random, rows, dims);
        if (random.index(3) == 0)
          for (double& x : values) x = std::round(x / 4);
        for (const std::uint64_t min_points : {1u, 2u, 3u, 9u, 40u}) {
          if (dims == 2) expect_tree<Metric::kL2, 2>(values, dims, min_points, random);
          expect_tree<Metric::kL2, 8>(values, dims, min_points, random);
          expect_tree<Metric::kL2, 0>(values, dims, min_points, random);
          expect_tree<Metric::kL1, 0>(values, dims, min_points, random);
          expect_tree<Metric::kLInf, 0>(values, dims, min_points, random);
          if (HasFatalFailure()) return;
        }
      }
}

TEST(EdgeSearch, knows_huge_and_tiny_values) {
  Random random(2402);
  for (const double scale : {1e-320, 1e-160, 1e154, 1e307, 1.7e308}) {
    std::vector<double> values;
    for (int i = 0; i < 200; ++i)
      values.push_back(random.index(20) == 0
                           ? random.pick(std::vector<double>{kMax, -kMax, -0.0, 0})
                           : scale * random.between(-1, 1));
    for (const std::uint64_t min_points : {1u, 4u, 99u, 100u}) {
      expect_tree<Metric::kL2, 2>(values, 2, min_points, random);
      expect_tree<Metric::kL1, 0>(values, 2, min_points, random);
      expect_tree<Metric::kLInf, 0>(values, 2, min_points, random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(EdgeSearch, of_equal_points_is_not_quadratic) {
  Random random(2403);
  constexpr std::uint64_t kRows = 20000;
  for (const double other : {0.0, 3.0}) {
    std::vector<double> values(2 * kRows, 1.5);
    for (std::size_t i = 0; i < values.size(); i += 4) values[i] += other;
    std::vector<std::int64_t> ids(kRows);
    std::iota(ids.begin(), ids.end(), 0);
    for (const std::uint64_t min_points : {1u, 5u, 20u}) {
      const Rounds<Metric::kL2, 2> found(values, 2, min_points, ids, random);
      ASSERT_EQ(found.edges().size(), kRows - 1);
      EXPECT_EQ(found.edges().back().distance, other);
      EXPECT_LE(found.rounds(), 5u);
      EXPECT_LT(found.candidates(), kRows * 300);
    }
  }
}

TEST(SmallestNumbers, are_the_smallest) {
  Random random(2404);
  for (const std::uint32_t k : {1u, 2u, 5u, 31u}) {
    std::vector<double> numbers(k), all;
    SmallestNumbers smallest(numbers.data(), k);
    for (std::uint32_t i = 0; i < 200; ++i) {
      all.push_back(static_cast<double>(random.index(60)));
      smallest.offer(all.back());
      ASSERT_EQ(smallest.is_full(), all.size() >= k);
      std::vector<double> sorted = all;
      std::sort(sorted.begin(), sorted.end());
      ASSERT_EQ(smallest.largest(), sorted[std::min<std::size_t>(k, all.size()) - 1]);
    }
  }
}

}  // namespace
}  // namespace gpujoin::test
