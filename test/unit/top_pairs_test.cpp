// TopPairs against sorting everything, in each of its ways; TopBatches; and what a rising threshold
// may leave out.

#include "engine/joins/top_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/score.h"
#include "points.h"

namespace gpujoin::test {
namespace {

const std::vector<TopkMethod> kMethods = {TopkMethod::kThreshold, TopkMethod::kHeap,
                                          TopkMethod::kSort};

bool operator==(const PairRank& a, const PairRank& b) {
  return !comes_before(a, b) && !comes_before(b, a);
}

JoinRequest request_of(std::uint64_t k, std::uint64_t rows = 1 << 20, bool lowest_first = false) {
  Dataset side{};
  side.rows = rows;
  return JoinRequest(Sides::two(side, side), PointsWithin{Metric::kL2, 0},
                     Output::top_pairs({{ScoreFunction::kSum, lowest_first, {1, 1}}, k}));
}

/// `keys` different keys, and ids that are now and then the same.
std::vector<PairRank> random_pairs(Random& random, std::size_t count, std::uint64_t keys) {
  std::vector<PairRank> pairs(count);
  for (PairRank& pair : pairs)
    pair = {random.index(keys), static_cast<std::int64_t>(random.index(100)) - 50,
            static_cast<std::int64_t>(random.index(100)) - 50};
  return pairs;
}

void expect_first(const TopPairs& top, std::vector<PairRank> pairs, std::uint64_t k) {
  std::sort(pairs.begin(), pairs.end(), comes_before);
  pairs.resize(std::min<std::size_t>(pairs.size(), k));
  ASSERT_EQ(top.size(), pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) ASSERT_TRUE(top[i] == pairs[i]) << i;
}

TEST(TopPairs, are_the_first_of_all_in_every_way_to_keep_them) {
  Random random(411);
  for (const std::uint64_t keys : {1u, 7u, 1000000u}) {
    const std::vector<PairRank> pairs = random_pairs(random, 30000, keys);
    for (const std::uint64_t k : {1u, 2u, 100u, 6000u, 29999u, 30000u, 40000u}) {
      for (const TopkMethod method : kMethods) {
        MemoryBudget budget(0);
        TopPairs top(budget, request_of(k), method);
        for (const PairRank& pair : pairs) top.add(pair);
        top.finish();
        expect_first(top, pairs, k);
      }
    }
  }
}

TEST(TopPairs, do_not_depend_on_the_order_of_coming) {
  Random random(412);
  std::vector<PairRank> pairs = random_pairs(random, 20000, 50);
  for (const bool ascending : {false, true}) {
    std::sort(pairs.begin(), pairs.end(), [&](const PairRank& a, const PairRank& b) {
      return ascending ? comes_before(b, a) : comes_before(a, b);
    });
    for (const TopkMethod method : kMethods) {
      MemoryBudget budget(0);
      TopPairs top(budget, request_of(500), method);
      for (const PairRank& pair : pairs) top.add(pair);
      top.finish();
      expect_first(top, pairs, 500);
    }
  }
}

TEST(TopPairs, keep_memory_that_k_bounds) {
  for (const TopkMethod method : kMethods) {
    MemoryBudget budget(0);
    TopPairs top(budget, request_of(10000), method);
    for (std::uint64_t i = 0; i < 1000000; ++i) top.add({i, 0, 0});
    EXPECT_LE(budget.peak(), 2 * 10000 * sizeof(PairRank));
  }
}

TEST(TopPairs, have_no_more_room_than_rows_make_pairs) {
  MemoryBudget budget(0);
  const TopPairs top(budget, request_of(kMostTopPairs, 10), TopkMethod::kHeap);
  EXPECT_EQ(budget.used(), 100 * sizeof(PairRank));
}

TEST(TopPairs, the_least_key_rises_but_not_above_what_matters) {
  Random random(413);
  const std::vector<PairRank> pairs = random_pairs(random, 50000, 1000000);
  for (const TopkMethod method : {TopkMethod::kThreshold, TopkMethod::kHeap}) {
    MemoryBudget budget(0);
    TopPairs top(budget, request_of(100), method);
    std::uint64_t before = 0;
    for (const PairRank& pair : pairs) {
      top.add(pair);
      ASSERT_GE(top.least_key(), before);
      before = top.least_key();
    }
    top.select();
    const std::uint64_t least = top.least_key();
    EXPECT_GT(before, 0u);
    top.finish();
    EXPECT_EQ(least, top[99].key);
  }
}

TEST(TopPairs, start_again_without_what_came_before) {
  for (const TopkMethod method : kMethods) {
    MemoryBudget budget(0);
    TopPairs top(budget, request_of(3), method);
    for (std::uint64_t i = 0; i < 10000; ++i) top.add({i, 1, 1});
    EXPECT_TRUE(top.full());
    top.restart(40);
    EXPECT_FALSE(top.full());
    EXPECT_EQ(top.least_key(), 40u);
    for (const std::uint64_t key : {39u, 41u, 40u}) top.add({key, 2, 2});
    EXPECT_FALSE(top.full());
    top.finish();
    expect_first(top, {{41, 2, 2}, {40, 2, 2}}, 3);
  }
}

TEST(TopBatches, hand_over_all_pairs_in_order) {
  Random random(414);
  std::vector<PairRank> pairs = random_pairs(random, 1000, 1000);
  for (PairRank& pair : pairs) pair.key = score_key(true, static_cast<double>(pair.key));
  for (const std::uint64_t most : {0u, 1u, 7u, 250u, 1000u, 5000u}) {
    MemoryBudget budget(0);
    JoinRequest request = request_of(1000, 1 << 20, true);
    request.knobs.batch_pairs = most;
    TopPairs top(budget, request, TopkMethod::kHeap);
    for (const PairRank& pair : pairs) top.add(pair);
    top.finish();
    TopBatches batches(budget, request, top);
    std::uint64_t at = 0;
    for (ResultBatch batch; batches.next(&batch);) {
      ASSERT_GT(batch.row_count, 0u);
      ASSERT_EQ(batch.pair_count, batch.row_count);
      ASSERT_LE(batch.row_count, most == 0 ? 1000 : most);
      for (std::uint64_t i = 0; i < batch.row_count; ++i, ++at) {
        ASSERT_EQ(batch.offsets[i], i);
        ASSERT_EQ(batch.left_ids[batch.rows[i]], top[at].id1);
        ASSERT_EQ(batch.right_ids[batch.neighbors[i]], top[at].id2);
        ASSERT_EQ(score_key(true, batch.distances[i]), top[at].key);
      }
      ASSERT_EQ(batch.offsets[batch.row_count], batch.row_count);
    }
    EXPECT_EQ(at, 1000u);
    EXPECT_EQ(batches.pairs(), 1000u);
    EXPECT_EQ(batches.batches(), most == 0 ? 1 : (1000 + most - 1) / most);
  }
}

TEST(TopBatches, of_nothing_are_none) {
  MemoryBudget budget(0);
  const JoinRequest request = request_of(5);
  TopPairs top(budget, request, TopkMethod::kThreshold);
  top.finish();
  TopBatches batches(budget, request, top);
  ResultBatch batch{};
  EXPECT_FALSE(batches.next(&batch));
  EXPECT_EQ(batches.batches(), 0u);
}

}  // namespace
}  // namespace gpujoin::test
