// Sets that are united pair by pair, by one thread or several, against labels that spread.

#include "core/disjoint_sets.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "points.h"

namespace gpujoin::test {
namespace {

using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// The smallest position of each one's set.
std::vector<std::uint32_t> labels_of(std::uint32_t count, const Pairs& pairs) {
  std::vector<std::uint32_t> labels(count);
  std::iota(labels.begin(), labels.end(), 0u);
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [a, b] : pairs) {
      const std::uint32_t label = std::min(labels[a], labels[b]);
      changed = changed || labels[a] != label || labels[b] != label;
      labels[a] = labels[b] = label;
    }
  }
  return labels;
}

std::vector<std::uint32_t> roots_of(std::uint32_t count, const Pairs& pairs, unsigned threads) {
  std::vector<std::uint32_t> links(count), roots(count);
  std::iota(links.begin(), links.end(), 0u);
  const DisjointSets sets(links.data());
  std::vector<std::thread> workers;
  for (unsigned worker = 0; worker < threads; ++worker)
    workers.emplace_back([&, worker] {
      for (std::size_t i = worker; i < pairs.size(); i += threads)
        sets.unite(pairs[i].first, pairs[i].second);
    });
  for (std::thread& worker : workers) worker.join();
  for (std::uint32_t position = 0; position < count; ++position)
    roots[position] = sets.root(position);
  return roots;
}

TEST(DisjointSets, roots_are_the_first_positions_of_their_sets) {
  Random random(77);
  for (int round = 0; round < 60; ++round) {
    const auto count = static_cast<std::uint32_t>(1 + random.index(200));
    Pairs pairs;
    for (std::uint64_t i = random.index(2 * count); i > 0; --i)
      pairs.emplace_back(random.index(count), random.index(count));
    EXPECT_EQ(roots_of(count, pairs, 1), labels_of(count, pairs)) << "round " << round;
  }
}

TEST(DisjointSets, several_threads_unite_chains_from_both_ends) {
  constexpr std::uint32_t kCount = 20000;
  Pairs pairs;
  for (std::uint32_t i = 0; i + 2 < kCount; ++i) {
    pairs.emplace_back(i, i + 2);  // the even ones, and the odd ones
    pairs.emplace_back(kCount - 1 - i, kCount - 3 - i);
  }
  const std::vector<std::uint32_t> roots = roots_of(kCount, pairs, 4);
  for (std::uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(roots[i], i % 2);
}

}  // namespace
}  // namespace gpujoin::test
