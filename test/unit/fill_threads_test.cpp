// How many threads write the pairs of a point: by exact counts, whatever a sample expected.

#include "engine/strategy/fill_threads.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpujoin::test {
namespace {

constexpr FillThresholds kThresholds{
    .candidates_for_eight = 64, .pairs_for_eight = 32, .pairs_for_warp = 4096};

std::vector<std::uint64_t> offsets_of(const std::vector<std::uint64_t>& pairs,
                                      std::uint64_t first = 0) {
  std::vector<std::uint64_t> offsets = {first};
  for (const std::uint64_t own : pairs) offsets.push_back(offsets.back() + own);
  return offsets;
}

double beside(const std::vector<std::uint64_t>& pairs, std::uint64_t first = 0) {
  return pairs_beside_a_pair(offsets_of(pairs, first).data(), pairs.size());
}

TEST(FillThreads, pairs_beside_a_pair_are_an_average_over_pairs) {
  EXPECT_EQ(beside({}), 0);
  EXPECT_EQ(beside({0, 0}), 0);
  EXPECT_EQ(beside({5}), 5);
  EXPECT_EQ(beside({5, 5, 5}, 1000), 5);
  EXPECT_EQ(beside({1, 3}), 2.5);
  EXPECT_EQ(beside({0, 0, 0, 8}), 8);
  // One point in a hundred has nearly all pairs: a mean over points would be 100.
  std::vector<std::uint64_t> skewed(100000, 1);
  for (std::size_t i = 0; i < skewed.size(); i += 101) skewed[i] = 10000;
  EXPECT_GT(beside(skewed), 1000);
}

TEST(FillThreads, of_many_rows_some_are_looked_at) {
  std::vector<std::uint64_t> even(1 << 20, 7);
  EXPECT_EQ(beside(even), 7);
  even.back() = 1 << 20;
  EXPECT_GT(beside(even), 1000) << "the last row is among them";
}

TEST(FillThreads, more_threads_where_a_point_has_more_to_write) {
  EXPECT_EQ(threads_for_filling(kThresholds, 1, 1), 1u);
  EXPECT_EQ(threads_for_filling(kThresholds, 63, 31), 1u);
  EXPECT_EQ(threads_for_filling(kThresholds, 64, 1), 8u);
  EXPECT_EQ(threads_for_filling(kThresholds, 1, 32), 8u);
  EXPECT_EQ(threads_for_filling(kThresholds, 1000, 4095), 8u);
  EXPECT_EQ(threads_for_filling(kThresholds, 1, 4096), 32u);
}

TEST(FillThreads, a_cliff_of_the_sample_is_none_of_the_counts) {
  // A sample that expects 63 candidates a cell where there are 65 changes nothing: dense rows are
  // seen in their pairs.
  const double pairs = beside(std::vector<std::uint64_t>(3000, 5000));
  EXPECT_EQ(threads_for_filling(kThresholds, 63, pairs),
            threads_for_filling(kThresholds, 65, pairs));
}

}  // namespace
}  // namespace gpujoin::test
