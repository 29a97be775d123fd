// Statistics of joins that are made of joins.

#include <gtest/gtest.h>

#include "engine/joins/join.h"

namespace gpujoin {
namespace {

TEST(JoinStats, shares_of_devices_are_added_up_over_joins) {
  JoinStats first{}, second{}, sum{};
  first.devices = 2;
  first.shares[0] = {0, 100};
  first.shares[1] = {3, 20};
  first.candidates = 120;
  second.devices = 2;
  second.shares[0] = {3, 7};
  second.shares[1] = {5, 1};
  second.candidates = 8;
  add_stats(sum, first);
  add_stats(sum, JoinStats{});  // one that was not shared
  add_stats(sum, second);
  EXPECT_EQ(sum.candidates, 128u);
  ASSERT_EQ(sum.devices, 3u);
  std::uint64_t of_device[6] = {};
  for (std::uint32_t i = 0; i < sum.devices; ++i)
    of_device[sum.shares[i].device] += sum.shares[i].candidates;
  EXPECT_EQ(of_device[0], 100u);
  EXPECT_EQ(of_device[3], 27u);
  EXPECT_EQ(of_device[5], 1u);
}

TEST(JoinStats, no_more_devices_than_there_is_room_for) {
  JoinStats all{}, more{};
  all.devices = kMostDevices;
  for (std::uint32_t i = 0; i < kMostDevices; ++i)
    all.shares[i] = {static_cast<std::int32_t>(i), 1};
  more.devices = 1;
  more.shares[0] = {1000, 1};
  JoinStats sum = more;
  add_stats(sum, all);
  EXPECT_EQ(sum.devices, kMostDevices);
}

}  // namespace
}  // namespace gpujoin
