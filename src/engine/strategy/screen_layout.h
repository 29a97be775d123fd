// How the tensor core screen of a device (cuda/tiles/tile_screen.cuh) uses shared memory: which
// kernel runs, how many chunks it holds, and how many of its thread blocks share a multiprocessor.
// Cards differ between 64 and 228 KB for each multiprocessor.
#pragma once

#include <cstdint>

namespace gpujoin {

/// Columns of a chunk: what a thread block copies of a tile at a time.
inline constexpr std::uint32_t kChunkDims = 32;
/// Halves between rows of a chunk: 16 bytes of padding keep ldmatrix free of bank conflicts.
inline constexpr std::uint32_t kChunkStride = kChunkDims + 8;
/// Halves between rows of a left tile in shared memory, beyond its columns, for the same reason.
inline constexpr std::uint32_t kResidentPadding = 8;

/// Columns up to which a left tile may stay in shared memory.
inline constexpr std::uint32_t kMaxResidentDims = 256;
/// Chunks that a thread block holds: one that it reads, the others on their way.
inline constexpr std::uint32_t kMinStages = 2, kMaxStages = 4;
/// Thread blocks for which a multiprocessor has registers.
inline constexpr std::uint32_t kMaxScreenBlocks = 2;

/// Bytes of the pairs that the warps of a thread block collect before they append them to a list.
inline constexpr std::uint32_t kCollectedBytes = 8 * 128 * 8;

/// The shared memory of a device, in bytes.
struct SharedMemory {
  std::uint32_t per_block;           ///< max of a thread block
  std::uint32_t per_multiprocessor;  ///< of all thread blocks on it
  std::uint32_t reserved_per_block;  ///< what the driver adds to each thread block on it
};

struct ScreenLayout {
  bool keeps_left;       ///< a left tile stays in shared memory while right tiles pass
  std::uint32_t stages;  ///< chunks that a thread block holds, or 0 if no layout fits
  std::uint32_t blocks;  ///< thread blocks on a multiprocessor
  std::uint32_t bytes;   ///< dynamic shared memory of a thread block
};

/// Returns the layout of a screen of listed pairs of tiles: as many thread blocks as fit, then as
/// many stages. `static_bytes`: shared memory of a thread block beside its dynamic one.
ScreenLayout choose_pair_screen(const SharedMemory& memory, std::uint32_t static_bytes);

/// Returns the layout of a screen of all pairs of tiles with `padded_dims` columns that collects
/// pairs. Prefers many thread blocks, then a left tile that stays, then many stages.
ScreenLayout choose_neighbor_screen(const SharedMemory& memory, std::uint32_t padded_dims);

}  // namespace gpujoin
