// Pairs of a sample, several looked at at once, against one after the other.
#include "engine/strategy/sampled_columns.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "points.h"

namespace gpujoin::test {
namespace {

Sample sample_of(std::size_t lefts, std::size_t rights, bool self_join) {
  return {std::vector<std::uint64_t>(lefts), std::vector<std::uint64_t>(rights), self_join};
}

/// Values that repeat, and a few that are not finite.
std::vector<double> odd_values(Random& random, std::size_t count) {
  std::vector<double> values(count);
  for (double& x : values) x = std::round(random.between(0, 40)) / 8;
  values[count / 2] = NAN;
  values[count / 3] = std::numeric_limits<double>::infinity();
  values[count / 4] = -std::numeric_limits<double>::infinity();
  return values;
}

std::size_t count_within(const std::vector<double>& left, const std::vector<double>& right,
                         bool self_join, double distance) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < left.size(); ++i)
    for (std::size_t j = self_join ? i + 1 : 0; j < right.size(); ++j)
      count += std::fabs(left[i] - right[j]) <= distance;
  return count;
}

TEST(SampledPairs, are_those_of_two_points_each_once) {
  EXPECT_EQ(SampledPairs(sample_of(512, 512, true), 1 << 20).count(), 512u * 511 / 2);
  EXPECT_EQ(SampledPairs(sample_of(512, 300, false), 1 << 20).count(), 512u * 300);
  EXPECT_EQ(SampledPairs(sample_of(1, 1, true), 100).count(), 0u);
  EXPECT_EQ(SampledPairs(sample_of(0, 0, true), 1).count(), 0u);
  EXPECT_EQ(SampledPairs(sample_of(3, 0, false), 1).count(), 0u);
}

TEST(SampledPairs, are_about_as_many_as_asked_for) {
  for (const bool self_join : {true, false}) {
    const SampledPairs some(sample_of(512, 512, self_join), 1 << 15);
    EXPECT_NEAR(static_cast<double>(some.count()), 1 << 15, (1 << 15) / 4.0);
  }
}

TEST(SampledPairs, within_reach_are_those_that_one_comparison_each_finds) {
  Random random(91);
  for (const bool self_join : {true, false}) {
    const std::vector<double> left = odd_values(random, 300);
    const std::vector<double> right = self_join ? left : odd_values(random, 170);
    const SampledColumn column(0, 0.5, left, right);
    const SampledPairs pairs(sample_of(left.size(), right.size(), self_join), 1 << 20);
    for (const double reaches : {0.0, 0.25, 0.5, 1.5, 100.0})
      EXPECT_EQ(PairsLeft(pairs).count_with(pairs.within(column, reaches)),
                count_within(left, right, self_join, reaches * 0.5))
          << reaches;
  }
}

TEST(SampledPairs, alike_neighbors_are_as_many_among_some_as_among_all) {
  // Two tables in one order: a row is like the other one's row of the same number.
  std::vector<double> values(512);
  std::iota(values.begin(), values.end(), 0.0);
  const SampledColumn column(0, 0.5, values, values);
  const SampledPairs all(sample_of(512, 512, false), 1 << 20),
      some(sample_of(512, 512, false), 1 << 15);
  const double share = static_cast<double>(some.count()) / static_cast<double>(all.count());
  EXPECT_EQ(PairsLeft(all).count_with(all.within(column, 1)), 512u);
  EXPECT_NEAR(static_cast<double>(PairsLeft(some).count_with(some.within(column, 1))), 512 * share,
              10);
}

TEST(PairsLeft, are_what_all_columns_leave) {
  Random random(92);
  const std::vector<double> one = odd_values(random, 200), other = odd_values(random, 200);
  const SampledColumn first(0, 1, one, one), second(1, 1, other, other);
  const SampledPairs pairs(sample_of(200, 200, true), 1 << 20);
  const PairMask near = pairs.within(first, 1), also = pairs.within(second, 1);
  std::size_t both = 0;
  for (std::size_t i = 0; i < 200; ++i)
    for (std::size_t j = i + 1; j < 200; ++j)
      both += std::fabs(one[i] - one[j]) <= 1 && std::fabs(other[i] - other[j]) <= 1;
  PairsLeft left(pairs);
  EXPECT_EQ(left.count(), 200.0 * 199 / 2);
  left.keep(near);
  EXPECT_EQ(left.count(), static_cast<double>(PairsLeft(pairs).count_with(near)));
  EXPECT_EQ(left.count_with(also), both);
  left.keep(also);
  EXPECT_EQ(left.count(), static_cast<double>(both));
}

TEST(SampledPairs, visits_the_pairs_of_a_mask) {
  Random random(93);
  for (const bool self_join : {true, false}) {
    const std::vector<double> left = odd_values(random, 130);
    const std::vector<double> right = self_join ? left : odd_values(random, 70);
    const SampledColumn column(0, 0.5, left, right);
    for (const std::size_t most : {std::size_t{1} << 20, std::size_t{3000}}) {
      const SampledPairs pairs(sample_of(left.size(), right.size(), self_join), most);
      const PairMask near = pairs.within(column, 1);
      std::set<std::pair<std::size_t, std::size_t>> visited;
      pairs.visit(near, [&](std::size_t i, std::size_t j) {
        EXPECT_LE(std::fabs(left[i] - right[j]), 0.5);
        EXPECT_TRUE(!self_join || i < j);
        EXPECT_TRUE(visited.emplace(i, j).second);
      });
      EXPECT_EQ(visited.size(), PairsLeft(pairs).count_with(near));
    }
  }
}

TEST(SampledPairs, meeting_intervals_are_counted_in_all_columns_together) {
  const std::vector<double> x = {0, 1, 3, 7}, y = {0, 0, 4, 0};
  const SampledColumn first(0, 1, x, x), second(1, 1, y, y);
  const SampledPairs pairs(sample_of(4, 4, true), 100);
  const auto meeting = [&](double width, double reach) {
    const std::vector<std::vector<double>> widths(2, std::vector<double>(4, width));
    return pairs.count_meeting({&first, &second}, widths, widths, reach);
  };
  EXPECT_EQ(meeting(0, 1), 1u);
  EXPECT_EQ(meeting(0, 5), 3u) << "3 and 4 apart is within 5";
  EXPECT_EQ(meeting(2, 3), 4u) << "the intervals of the last two are 2 apart in both columns";
}

TEST(OrderedValues, of_equal_values_the_slices_are_as_wide_as_those_around_them) {
  const OrderedValues ordered({5, 1, 1, NAN, 3});
  EXPECT_EQ(ordered.sorted, (std::vector<double>{1, 1, 3, 5}));
  EXPECT_EQ(ordered.ranks, (std::vector<std::uint16_t>{3, 0, 0, 4, 2}));
  const std::vector<double> widths = slice_widths(ordered, 2);  // one to each side
  EXPECT_EQ(widths, (std::vector<double>{2, 0, 0, 0, 4}));
}

}  // namespace
}  // namespace gpujoin::test
