// Numbers of threads beyond what 32 bits hold, in launches as large as devices allow.
#include "core/thread_number.h"

#include <gtest/gtest.h>

namespace gpujoin::test {
namespace {

TEST(ThreadNumber, counts_on_where_32_bits_begin_anew) {
  EXPECT_EQ(thread_number(0, 256, 5), 5u);
  EXPECT_EQ(thread_number(1, 256, 0), 256u);
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 32;
  EXPECT_EQ(thread_number((1u << 24) - 1, 256, 255), kLimit - 1);
  EXPECT_EQ(thread_number(1u << 24, 256, 0), kLimit);
  // A warp a point, as tiles are rounded: this one was point 0 once more.
  EXPECT_EQ(thread_number(1u << 24, 256, 0) / 32, 1u << 27);
  EXPECT_EQ(thread_number((1u << 31) - 1, 1024, 1023), (std::uint64_t{1} << 41) - 1);
}

}  // namespace
}  // namespace gpujoin::test
