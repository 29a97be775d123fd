#include "engine/strategy/screen_layout.h"

#include "core/tile_screen.h"

namespace gpujoin {
namespace {

constexpr std::uint32_t kHalf = 2, kFloat = 4;
/// Flags that a thread block keeps in static shared memory.
constexpr std::uint32_t kFlagBytes = 16;
/// Rows of one tile in a chunk, and a threshold for each.
constexpr std::uint32_t kChunkBytes = kScreenTile * (kChunkStride * kHalf + kFloat);

/// The layout with the most stages that lets `blocks` thread blocks share a multiprocessor.
ScreenLayout fit(const SharedMemory& memory, std::uint32_t blocks, bool keeps_left,
                 std::uint32_t static_bytes, std::uint32_t left_bytes, std::uint32_t stage_bytes) {
  for (std::uint32_t stages = kMaxStages; stages >= kMinStages; --stages) {
    const std::uint32_t dynamic = left_bytes + stages * stage_bytes;
    const std::uint32_t own = static_bytes + kFlagBytes + dynamic;
    if (own <= memory.per_block &&
        blocks * (own + memory.reserved_per_block) <= memory.per_multiprocessor)
      return {keeps_left, stages, blocks, dynamic};
  }
  return {};
}

ScreenLayout fit_pairs(const SharedMemory& memory, std::uint32_t blocks,
                       std::uint32_t static_bytes) {
  return fit(memory, blocks, false, static_bytes, 0, 2 * kChunkBytes);
}

ScreenLayout fit_left(const SharedMemory& memory, std::uint32_t blocks, std::uint32_t dims) {
  if (dims > kMaxResidentDims) return {};
  const std::uint32_t left = kScreenTile * ((dims + kResidentPadding) * kHalf + kFloat);
  return fit(memory, blocks, true, kCollectedBytes, left, kChunkBytes);
}

}  // namespace

ScreenLayout choose_pair_screen(const SharedMemory& memory, std::uint32_t static_bytes) {
  ScreenLayout layout{};
  for (std::uint32_t blocks = kMaxScreenBlocks; blocks > 0 && layout.stages == 0; --blocks)
    layout = fit_pairs(memory, blocks, static_bytes);
  return layout;
}

ScreenLayout choose_neighbor_screen(const SharedMemory& memory, std::uint32_t padded_dims) {
  ScreenLayout layout{};
  for (std::uint32_t blocks = kMaxScreenBlocks; blocks > 0 && layout.stages == 0; --blocks) {
    layout = fit_left(memory, blocks, padded_dims);
    if (layout.stages == 0) layout = fit_pairs(memory, blocks, kCollectedBytes);
  }
  return layout;
}

}  // namespace gpujoin
