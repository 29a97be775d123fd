// Clusters made of pairs, in any order of them, against the definition.
#include "pg/geometry/pair_clusters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace gpujoin {
namespace {

constexpr std::uint32_t kNone = PairClusters::kNone;

struct Pair {
  std::uint32_t p, q;
  bool near;
};

/// By the definition: numbers in the order of first rows, border rows with their first core row.
std::vector<std::uint32_t> expected_numbers(std::uint32_t rows, std::uint32_t min_points,
                                            const std::vector<Pair>& pairs,
                                            const std::vector<bool>& absent) {
  std::vector<std::vector<std::uint32_t>> near(rows);
  for (const Pair& pair : pairs) {
    if (!pair.near) continue;
    near[pair.p].push_back(pair.q);
    near[pair.q].push_back(pair.p);
  }
  const auto is_core = [&](std::uint32_t row) {
    return !absent[row] && near[row].size() + 1 >= min_points;
  };
  std::vector<std::uint32_t> group(rows, kNone), numbers(rows, kNone);
  for (std::uint32_t row = 0; row < rows; ++row) {
    if (!is_core(row) || group[row] != kNone) continue;
    std::vector<std::uint32_t> open = {row};
    group[row] = row;
    while (!open.empty()) {
      const std::uint32_t next = open.back();
      open.pop_back();
      for (const std::uint32_t other : near[next])
        if (is_core(other) && group[other] == kNone) {
          group[other] = row;
          open.push_back(other);
        }
    }
  }
  for (std::uint32_t row = 0; row < rows; ++row) {
    if (is_core(row)) continue;
    std::uint32_t first = kNone;
    for (const std::uint32_t other : near[row])
      if (is_core(other)) first = std::min(first, other);
    if (first != kNone) group[row] = group[first];
  }
  std::vector<std::uint32_t> number(rows, kNone);
  std::uint32_t count = 0;
  for (std::uint32_t row = 0; row < rows; ++row) {
    if (group[row] == kNone) continue;
    if (number[group[row]] == kNone) number[group[row]] = count++;
    numbers[row] = number[group[row]];
  }
  return numbers;
}

TEST(PairClusters, follow_from_pairs_in_any_order) {
  std::mt19937 random(11);
  const auto below = [&](std::uint32_t n) {
    return std::uniform_int_distribution<std::uint32_t>(0, n - 1)(random);
  };
  for (int turn = 0; turn < 3000; ++turn) {
    const std::uint32_t rows = 1 + below(40), min_points = 1 + below(6);
    const std::uint32_t candidates = 1 + below(30), share = 1 + below(4);
    std::vector<Pair> pairs;
    std::vector<bool> absent(rows);
    for (std::uint32_t row = 0; row < rows; ++row) absent[row] = below(10) == 0;
    for (std::uint32_t p = 0; p < rows; ++p)
      for (std::uint32_t q = p + 1; q < rows; ++q)
        if (!absent[p] && !absent[q] && below(candidates) == 0)
          pairs.push_back({p, q, below(share) == 0});
    std::vector<std::uint32_t> links(rows), states(rows);
    PairClusters clusters(links.data(), states.data(), rows, min_points);
    for (std::uint32_t row = 0; row < rows; ++row)
      if (absent[row]) clusters.leave_out(row);
    const auto in_any_order = [&](const auto& take) {
      std::shuffle(pairs.begin(), pairs.end(), random);
      for (const Pair& pair : pairs) {
        const bool swapped = below(2) == 0;
        take(swapped ? pair.q : pair.p, swapped ? pair.p : pair.q,
             [&](std::uint32_t, std::uint32_t) { return pair.near; });
      }
    };
    if (min_points > 1) {
      in_any_order(
          [&](std::uint32_t p, std::uint32_t q, const auto&) { clusters.take_candidate(p, q); });
      if (clusters.begin_counting() > 0)
        in_any_order([&](std::uint32_t p, std::uint32_t q, const auto& are_near) {
          if (clusters.open() > 0) clusters.count(p, q, are_near);
        });
      clusters.begin_connecting();
    }
    in_any_order([&](std::uint32_t p, std::uint32_t q, const auto& are_near) {
      clusters.connect(p, q, are_near);
    });
    clusters.number();
    ASSERT_EQ(links, expected_numbers(rows, min_points, pairs, absent));
  }
}

TEST(PairClusters, decide_no_pair_that_changes_nothing) {
  constexpr std::uint32_t kRows = 200, kMinPoints = 4;
  std::vector<std::uint32_t> links(kRows), states(kRows);
  PairClusters clusters(links.data(), states.data(), kRows, kMinPoints);
  int decided = 0;
  const auto are_near = [&](std::uint32_t, std::uint32_t) {
    ++decided;
    return true;
  };
  const auto all_pairs = [&](const auto& take) {
    for (std::uint32_t p = 0; p < kRows; ++p)
      for (std::uint32_t q = p + 1; q < kRows; ++q) take(p, q);
  };
  all_pairs([&](std::uint32_t p, std::uint32_t q) { clusters.take_candidate(p, q); });
  EXPECT_EQ(clusters.begin_counting(), kRows);
  all_pairs([&](std::uint32_t p, std::uint32_t q) { clusters.count(p, q, are_near); });
  EXPECT_EQ(clusters.begin_connecting(), kRows);
  all_pairs([&](std::uint32_t p, std::uint32_t q) { clusters.connect(p, q, are_near); });
  clusters.number();
  EXPECT_LT(decided, 4 * static_cast<int>(kRows));
  EXPECT_EQ(std::count(links.begin(), links.end(), 0), kRows);
}

}  // namespace
}  // namespace gpujoin
