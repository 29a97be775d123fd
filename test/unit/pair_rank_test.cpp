// Ranks of pairs: the one before another, and nothing between.
#include "core/pair_rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/score.h"

namespace gpujoin::test {
namespace {

bool same(const PairRank& a, const PairRank& b) {
  return !comes_before(a, b) && !comes_before(b, a);
}

TEST(PairRank, nothing_lies_between_a_rank_and_the_one_before) {
  const std::vector<std::int64_t> ids = {INT64_MIN, INT64_MIN + 1, -1,       0,
                                         1,         INT64_MAX - 1, INT64_MAX};
  const std::vector<std::uint64_t> keys = {0,
                                           1,
                                           2,
                                           score_key(false, 1.5),
                                           score_key(true, 1.5),
                                           score_key(false, HUGE_VAL),
                                           score_key(true, -HUGE_VAL)};
  std::vector<PairRank> ranks;
  for (const std::uint64_t key : keys)
    for (const std::int64_t id1 : ids)
      for (const std::int64_t id2 : ids) ranks.push_back({key, id1, id2});
  for (const PairRank& rank : ranks) {
    const PairRank before = rank_before(rank);
    EXPECT_TRUE(comes_before(before, rank));
    for (const PairRank& other : ranks)
      EXPECT_EQ(comes_before(other, rank), !comes_before(before, other));
  }
}

TEST(PairRank, a_rank_before_carries_from_the_second_id_to_the_first_and_to_the_key) {
  EXPECT_TRUE(same(rank_before({5, 3, 7}), {5, 3, 6}));
  EXPECT_TRUE(same(rank_before({5, 3, INT64_MIN}), {5, 2, INT64_MAX}));
  EXPECT_TRUE(same(rank_before({5, INT64_MIN, INT64_MIN}), last_rank(6)));
}

}  // namespace
}  // namespace gpujoin::test
