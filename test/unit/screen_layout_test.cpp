// The shared memory of the tensor core screen, on every architecture that has tensor cores.

#include "engine/strategy/screen_layout.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpujoin::test {
namespace {

struct Architecture {
  std::uint32_t number;
  SharedMemory memory;
};

constexpr std::uint32_t kKb = 1024;

/// As in NVIDIA's table of compute capabilities.
const std::vector<Architecture> kArchitectures = {
    {75, {64 * kKb, 64 * kKb, 0}},      {80, {163 * kKb, 164 * kKb, kKb}},
    {86, {99 * kKb, 100 * kKb, kKb}},   {87, {163 * kKb, 164 * kKb, kKb}},
    {89, {99 * kKb, 100 * kKb, kKb}},   {90, {227 * kKb, 228 * kKb, kKb}},
    {100, {227 * kKb, 228 * kKb, kKb}}, {103, {227 * kKb, 228 * kKb, kKb}},
    {110, {227 * kKb, 228 * kKb, kKb}}, {120, {99 * kKb, 100 * kKb, kKb}},
    {121, {99 * kKb, 100 * kKb, kKb}},
};

SharedMemory memory_of(std::uint32_t number) {
  for (const Architecture& architecture : kArchitectures)
    if (architecture.number == number) return architecture.memory;
  return {};
}

/// What ptxas reports as static shared memory: the collected pairs and a flag.
constexpr std::uint32_t kStaticBytes = 8208;

/// By hand: 128 rows of halves and a threshold each.
std::uint32_t bytes_of(const ScreenLayout& layout, std::uint32_t dims) {
  const std::uint32_t chunk = 128 * (40 * 2 + 4);
  return layout.keeps_left ? 128 * ((dims + 8) * 2 + 4) + layout.stages * chunk
                           : layout.stages * 2 * chunk;
}

void expect_fits(const Architecture& on, const ScreenLayout& layout, std::uint32_t static_bytes) {
  ASSERT_GE(layout.stages, 2u) << "sm_" << on.number;
  ASSERT_LE(layout.stages, 4u) << "sm_" << on.number;
  ASSERT_GE(layout.blocks, 1u) << "sm_" << on.number;
  ASSERT_LE(static_bytes + layout.bytes, on.memory.per_block) << "sm_" << on.number;
  ASSERT_LE(layout.blocks * (static_bytes + layout.bytes + on.memory.reserved_per_block),
            on.memory.per_multiprocessor)
      << "sm_" << on.number;
}

TEST(ScreenLayout, every_architecture_screens_neighbors_in_all_dimensions) {
  for (const Architecture& on : kArchitectures) {
    for (std::uint32_t dims = 1; dims <= 1024; ++dims) {
      const std::uint32_t padded = (dims + 15) / 16 * 16;
      const ScreenLayout layout = choose_neighbor_screen(on.memory, padded);
      SCOPED_TRACE(dims);
      expect_fits(on, layout, kStaticBytes);
      EXPECT_EQ(layout.bytes, bytes_of(layout, padded));
      EXPECT_TRUE(!layout.keeps_left || padded <= kMaxResidentDims);
    }
  }
}

TEST(ScreenLayout, every_architecture_screens_pairs_of_tiles) {
  for (const Architecture& on : kArchitectures) {
    for (const std::uint32_t taken : {0u, 16u, 1024u}) {
      const ScreenLayout layout = choose_pair_screen(on.memory, taken);
      expect_fits(on, layout, taken);
      EXPECT_FALSE(layout.keeps_left);
      EXPECT_EQ(layout.bytes, bytes_of(layout, 0));
    }
  }
}

/// 256 is the commonest size. Four stages would leave room for one thread block.
TEST(ScreenLayout, two_blocks_share_a_multiprocessor_of_a_data_center_card_in_256_dimensions) {
  for (const std::uint32_t number : {90u, 100u}) {
    for (std::uint32_t dims = 16; dims <= 256; dims += 16) {
      const ScreenLayout layout = choose_neighbor_screen(memory_of(number), dims);
      EXPECT_TRUE(layout.keeps_left) << dims;
      EXPECT_EQ(layout.blocks, 2u) << dims;
      EXPECT_EQ(layout.stages, dims <= 240 ? 4u : 3u) << dims;
    }
    const ScreenLayout pairs = choose_pair_screen(memory_of(number), 0);
    EXPECT_EQ(pairs.blocks, 2u);
    EXPECT_EQ(pairs.stages, 4u);
  }
}

TEST(ScreenLayout, a_left_tile_of_256_dimensions_stays_on_cards_with_99_kb) {
  for (const std::uint32_t number : {86u, 89u, 120u}) {
    for (std::uint32_t dims = 16; dims <= 256; dims += 16)
      EXPECT_TRUE(choose_neighbor_screen(memory_of(number), dims).keeps_left) << dims;
    EXPECT_FALSE(choose_neighbor_screen(memory_of(number), 272).keeps_left);
  }
}

TEST(ScreenLayout, no_layout_is_no_stages) {
  EXPECT_EQ(choose_pair_screen({32 * kKb, 64 * kKb, 0}, 0).stages, 0u);
  EXPECT_EQ(choose_neighbor_screen({32 * kKb, 64 * kKb, 0}, 128).stages, 0u);
}

}  // namespace
}  // namespace gpujoin::test
