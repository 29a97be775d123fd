// The innermost loops: one point against ranges of others, with the vector instructions of the
// processor that is found at run time. No threads, no allocation, no choice of algorithm.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/request/request.h"

namespace gpujoin::cpu {

/// Points are stored in tiles of 8: the first columns of 8 points, then their second columns, and
/// so on. Unused places of the last tile hold NaN, which matches nothing.
inline constexpr std::uint32_t kTilePoints = 8;

/// The first coordinate of the point at a position; each further one lies kTilePoints behind the
/// one before.
template <class T>
T* tile_place(T* tiles, std::size_t position, std::uint32_t dims) {
  return tiles + position / kTilePoints * (std::size_t{dims} * kTilePoints) +
         position % kTilePoints;
}

/// Room that collect() may overwrite past the last result.
inline constexpr std::uint32_t kCollectPadding = 8;

/// A range of positions, begin < end.
struct Window {
  std::uint32_t begin;
  std::uint32_t end;
};

/// The places of a window's points and of the others in their tiles, which spread() writes.
inline Window tiles_around(Window window) {
  return {window.begin & ~(kTilePoints - 1), (window.end + kTilePoints - 1) & ~(kTilePoints - 1)};
}

/// One point against the tiled points of one index.
struct Scan {
  const void* tiles;    ///< of the scalar type the kernel was chosen for
  const double* query;  ///< [dims], columns in the order of the tiles
  std::uint32_t dims;
  double threshold;    ///< direct: Threshold::raw. Screened: ScreenBounds::reject
  bool short_circuit;  ///< screened only
};

/// Direct kernels sum in column order and decide by the definition. Screened kernels sum in any
/// order and let pass whatever is not above the threshold; the caller rechecks their raw sums.
struct ScanKernel {
  /// The number of points in the windows that pass.
  std::uint64_t (*count)(const Scan& scan, const Window* windows, std::size_t window_count);
  /// Writes the positions that pass, in order, and their raw sums unless `raws` is null. Returns
  /// their number.
  std::size_t (*collect)(const Scan& scan, const Window* windows, std::size_t window_count,
                         std::uint32_t* positions, double* raws);
  /// Writes the raw sum of each point that passes, NaN for others: those in tiles_around() each
  /// window, one window after another. Returns the number that pass.
  std::uint64_t (*spread)(const Scan& scan, const Window* windows, std::size_t window_count,
                          double* raws);
  /// The number of pairs that the left points of a block, all of one tile, make with the points in
  /// the windows, and, where the sides are one, of those that they make `among` themselves, each
  /// once. Direct kernels only, else null; Scan::query is not needed.
  std::uint64_t (*count_block)(const Scan& scan, const void* left_tiles, Window block, bool among,
                               const Window* windows, std::size_t window_count);
};

/// `screened` must be true beyond kMaxDirectDimensions.
ScanKernel choose_scan_kernel(Metric metric, ScalarType scalar, std::uint32_t dims, bool screened);

/// The instruction set that the kernels run on, such as "AVX3".
const char* instruction_set();

}  // namespace gpujoin::cpu
