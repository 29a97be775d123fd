#include "engine/joins/work_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace gpujoin {
namespace {

/// Takes until nothing is left, each time for the walk whose work ends first where walk i needs
/// costs[i] for a place. Returns when each walk ends.
std::vector<double> walk_all(const std::vector<double>& costs, std::uint32_t all,
                             std::uint32_t most, std::uint32_t unit) {
  const auto walks = static_cast<std::uint32_t>(costs.size());
  std::vector<WorkShare> shares = WorkShare::among(walks, {.always = true});
  std::vector<double> ends(shares.size(), 0);
  std::uint32_t next = 0;
  while (!shares[0].is_taken(all)) {
    const auto first = std::min_element(ends.begin(), ends.end()) - ends.begin();
    const auto walk = static_cast<std::size_t>(first);
    const Places taken = shares[walk].take(all, most, unit);
    EXPECT_EQ(taken.first, next) << "each place is taken once, in order";
    EXPECT_GT(taken.count(), 0u);
    EXPECT_LE(taken.count(), std::max(most, unit));
    if (taken.end < all) {
      EXPECT_EQ(taken.count() % unit, 0u);
    }
    next = taken.end;
    ends[walk] += costs[walk] * taken.count();
  }
  EXPECT_EQ(next, all);
  return ends;
}

TEST(WorkShare, one_walk_takes_what_it_asks_for) {
  WorkShare share;
  EXPECT_TRUE(share.is_all());
  EXPECT_TRUE(share.is_first());
  EXPECT_FALSE(share.is_taken(100));
  EXPECT_EQ(share.take(100, 60).count(), 60u);
  const Places rest = share.take(100, 60);
  EXPECT_EQ(rest.first, 60u);
  EXPECT_EQ(rest.end, 100u);
  EXPECT_TRUE(share.is_taken(100));
  EXPECT_EQ(share.take(100, 60).count(), 0u);
}

TEST(WorkShare, nothing_to_do_is_done) {
  for (WorkShare share : WorkShare::among(3, {.always = true})) {
    EXPECT_TRUE(share.is_taken(0));
    EXPECT_EQ(share.take(0, 10, 4).count(), 0u);
  }
}

/// The clock decides: nothing is worth sharing, or everything that is not done.
TEST(WorkShare, the_first_places_tell_whether_others_may_begin) {
  for (const bool is_worth : {false, true}) {
    const double least_ms = is_worth ? -1e6 : 1e6;
    std::vector<WorkShare> shares = WorkShare::among(2, {.always = false, .least_ms = least_ms});
    EXPECT_FALSE(shares[0].has_begun());
    const Places trial = shares[0].take(12800, 12800);
    EXPECT_EQ(trial.count(), 100u);
    EXPECT_TRUE(shares[0].has_begun());
    EXPECT_FALSE(shares[0].is_open());
    const Places next = shares[0].take(12800, 12800);
    EXPECT_EQ(shares[0].is_open(), is_worth);
    EXPECT_EQ(next.count(), is_worth ? 12700u / 16 : 12700u);
    EXPECT_FALSE(shares[1].has_begun());
  }
}

TEST(WorkShare, first_places_keep_a_device_busy) {
  std::vector<WorkShare> shares = WorkShare::among(2, {.always = false, .least_ms = 0});
  EXPECT_EQ(shares[0].take(12800, 12800, 1, 5000).count(), 5000u);
  shares = WorkShare::among(2, {.always = true});
  EXPECT_EQ(shares[0].take(12800, 12800, 1, 5000).count(), 100u);
}

TEST(WorkShare, one_walk_is_the_first) {
  const std::vector<WorkShare> shares = WorkShare::among(3, {.always = true});
  EXPECT_EQ(std::count_if(shares.begin(), shares.end(),
                          [](const WorkShare& share) { return share.is_first(); }),
            1);
  EXPECT_FALSE(shares[1].is_all());
}

TEST(WorkShare, walks_take_every_place_once) {
  for (const std::uint32_t walks : {1, 2, 3, 8})
    for (const std::uint32_t all : {1, 2, 7, 1000, 100000})
      for (const std::uint32_t most : {1, 10, 100000})
        for (const std::uint32_t unit : {1, 64})
          walk_all(std::vector<double>(walks, 1), all, most, unit);
}

TEST(WorkShare, a_sequence_is_over_once_those_who_took_places_have_left_it) {
  constexpr std::uint32_t kAll = 100;
  std::vector<WorkShare> shares = WorkShare::among(3, {.always = true});
  EXPECT_FALSE(shares[2].is_over(kAll)) << "nothing is taken";
  std::uint32_t taken = 0;
  while (!shares[0].is_taken(kAll)) taken += shares[taken % 2].take(kAll, 7).count();
  EXPECT_EQ(taken, kAll);
  EXPECT_TRUE(shares[0].is_at_work());
  EXPECT_TRUE(shares[1].is_at_work());
  EXPECT_FALSE(shares[2].is_at_work());
  EXPECT_FALSE(shares[2].is_over(kAll));
  shares[2].leave();  // of what it never took nobody waits
  shares[1].leave();
  EXPECT_FALSE(shares[1].is_over(kAll));
  shares[0].leave();
  for (const WorkShare& share : shares) EXPECT_TRUE(share.is_over(kAll));
  EXPECT_TRUE(shares[0].has_begun());
  EXPECT_FALSE(shares[2].has_begun());
}

TEST(WorkShare, sequences_follow_each_other) {
  std::vector<WorkShare> shares = WorkShare::among(2, {.always = true});
  while (!shares[0].is_taken(50)) shares[0].take(50, 50);
  WorkShare next = shares[0].following();
  EXPECT_TRUE(shares[0].is_taken(50));
  EXPECT_FALSE(next.is_taken(1)) << "it has places of its own";
  EXPECT_TRUE(shares[0].is_at_work());
  EXPECT_FALSE(next.is_at_work());
  EXPECT_FALSE(next.is_alone());
  // The other one comes late, and takes all of the second sequence.
  WorkShare late = shares[1].following();
  EXPECT_FALSE(late.has_begun());
  std::uint32_t taken = 0;
  while (!late.is_taken(30)) taken += late.take(30, 30).count();
  EXPECT_EQ(taken, 30u);
  EXPECT_TRUE(next.is_taken(30));
  EXPECT_FALSE(next.is_over(30));
  EXPECT_TRUE(shares[1].has_begun()) << "wherever it took places";
  EXPECT_FALSE(shares[1].is_at_work());
  late.leave();
  EXPECT_TRUE(next.is_over(30));
  EXPECT_FALSE(next.following().is_taken(1));
}

TEST(WorkShare, what_is_decided_holds_for_the_sequences_that_follow) {
  EXPECT_TRUE(WorkShare().is_alone());
  EXPECT_TRUE(WorkShare().following().is_alone());
  EXPECT_EQ(WorkShare().following().take(100, 100).count(), 100u);
  EXPECT_TRUE(WorkShare::among(1, {.always = true})[0].is_alone());
  for (const bool is_worth : {false, true}) {
    std::vector<WorkShare> shares =
        WorkShare::among(2, {.always = false, .least_ms = is_worth ? -1e6 : 1e6});
    EXPECT_FALSE(shares[0].is_alone());
    shares[0].take(12800, 12800);
    EXPECT_FALSE(shares[0].is_alone());
    shares[0].take(12800, 12800);
    WorkShare next = shares[0].following();
    EXPECT_EQ(next.is_alone(), !is_worth);
    EXPECT_EQ(next.is_open(), is_worth);
    EXPECT_EQ(next.take(12800, 12800).count(), is_worth ? 12800u / 16 : 12800u);
  }
}

/// However fast each of them is, the last ends little later than the first.
TEST(WorkShare, walks_end_together) {
  constexpr std::uint32_t kAll = 1000000;
  for (const std::vector<double>& costs :
       {std::vector<double>{1, 1}, {1, 3}, {5, 1}, {1, 1, 1, 1}, {1, 2, 4, 8}}) {
    const std::vector<double> ends = walk_all(costs, kAll, kAll, 1);
    double rate = 0;
    for (const double cost : costs) rate += 1 / cost;
    EXPECT_LE(*std::max_element(ends.begin(), ends.end()), 1.05 * kAll / rate);
  }
}

}  // namespace
}  // namespace gpujoin
