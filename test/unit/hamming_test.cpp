// Segments of bits: what a pair near each other has in common, and in which pass it is met.

#include "core/hamming.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <vector>

#include "points.h"

namespace gpujoin::test {
namespace {

TEST(Hamming, distance_counts_the_bits_that_differ) {
  const std::uint64_t a[] = {0, ~0ull, 5}, b[] = {1, 0, 6};
  EXPECT_EQ(hamming_distance(a, b, 1), 1u);
  EXPECT_EQ(hamming_distance(a, b, 3), 1u + 64 + 2);
  EXPECT_EQ(hamming_distance(a, a, 3), 0u);
  const std::uint64_t apart[] = {1, 99, 0, 99, 6, 99};
  EXPECT_EQ(hamming_distance(a, 1, apart, 2, 3), 1u + 64 + 2);
}

TEST(Hamming, jaccard_distance_bounds_the_bits_that_differ) {
  for (const double eps : {0.0, 0.1, 0.25, 1 / 3.0, 0.5, 0.99, 1.0, 2.0})
    for (std::uint32_t ones = 0; ones < 150; ++ones)
      for (std::uint32_t common = 0; 2 * common <= ones; ++common) {
        const double any = ones - common;
        const double distance = common == 0 ? 1 : 1 - common / any;
        EXPECT_EQ(distance <= eps, ones - 2 * common <= most_differing(ones, eps))
            << ones << " ones, " << common << " in common, " << eps;
      }
}

TEST(Hamming, sets_are_listed_once_each) {
  for (std::uint32_t count = 1; count <= 12; ++count)
    for (std::uint32_t chosen = 1; chosen <= count; ++chosen) {
      std::set<std::uint64_t> seen;
      std::uint64_t set = (std::uint64_t{1} << chosen) - 1;
      const auto sets = static_cast<std::uint64_t>(sets_of(chosen, count));
      for (std::uint64_t i = 0; i < sets; ++i, set = next_set(set)) {
        EXPECT_EQ(std::popcount(set), static_cast<int>(chosen));
        EXPECT_LT(set, std::uint64_t{1} << count);
        EXPECT_TRUE(seen.insert(set).second);
      }
      EXPECT_GE(set, std::uint64_t{1} << count) << "the last set was not reached";
    }
}

TEST(Hamming, first_members_are_the_lowest) {
  EXPECT_EQ(first_members(0b101101, 2), 0b101u);
  EXPECT_EQ(first_members(0b101101, 4), 0b101101u);
  EXPECT_EQ(first_members(0b101101, 0), 0u);
}

/// Any cut into segments, some bits in none, and any pair: one pass meets it, if it is near enough.
TEST(Hamming, a_pair_is_met_in_one_pass) {
  Random random(31);
  constexpr std::uint32_t kWords = 2;
  for (int run = 0; run < 2000; ++run) {
    const auto radius = static_cast<std::uint32_t>(random.index(8));
    const auto segments = radius + 1 + static_cast<std::uint32_t>(random.index(5));
    const std::uint32_t equal = segments - radius;
    std::vector<std::uint64_t> masks(segments * kWords, 0);
    for (std::uint32_t bit = 0; bit < 64 * kWords; ++bit)
      if (const auto s = random.index(segments + 1); s < segments)
        masks[s * kWords + bit / 64] |= std::uint64_t{1} << bit % 64;
    const std::uint64_t a[] = {random.bits(), random.bits()};
    std::uint64_t b[] = {a[0], a[1]};
    for (std::uint32_t flips = 0; flips < radius; ++flips) {
      const std::uint64_t bit = random.index(64 * kWords);
      b[bit / 64] ^= std::uint64_t{1} << bit % 64;
    }
    const std::uint64_t agree = equal_segments(a, 1, b, 1, kWords, masks.data(), segments);
    ASSERT_GE(static_cast<std::uint32_t>(std::popcount(agree)), equal);
    int met = 0;
    std::uint64_t set = (std::uint64_t{1} << equal) - 1;
    const auto passes = static_cast<std::uint64_t>(sets_of(equal, segments));
    for (std::uint64_t pass = 0; pass < passes; ++pass, set = next_set(set)) {
      if ((agree & set) == set && first_members(agree, equal) == set) ++met;
      std::uint64_t mask[kWords] = {};
      for (std::uint32_t s = 0; s < segments; ++s)
        for (std::uint32_t w = 0; w < kWords; ++w)
          if ((set >> s & 1) != 0) mask[w] |= masks[s * kWords + w];
      if ((agree & set) == set) {
        EXPECT_EQ(hash_of_bits(a, 1, mask, kWords), hash_of_bits(b, 1, mask, kWords));
      }
    }
    EXPECT_EQ(met, 1);
  }
}

}  // namespace
}  // namespace gpujoin::test
