// One side of a join by dense tiles: points centred, scaled and rounded to single precision in the
// order of the index, their thresholds, and the boxes of neighbouring points.
#pragma once

#include <cstdint>

#include "core/tile_screen.h"
#include "cpu/index/grid_index.h"
#include "cpu/scan/tile_scan.h"
#include "engine/request/buffer.h"
#include "engine/worker_pool.h"

namespace gpujoin::cpu {

inline constexpr std::uint32_t kTileGroups = kScreenTile / kGroupPoints;

/// The ranges of the index columns that some points lie in: a low and a high end for each column,
/// in a row.
struct Boxes {
  std::uint32_t columns = 0;
  Buffer<double> ends;  ///< [boxes][2 * columns]

  double* at(std::size_t box) { return ends.data() + box * 2 * columns; }
  const double* at(std::size_t box) const { return ends.data() + box * 2 * columns; }
};

/// The finite points of an index by position, in groups; the last one is filled up with points
/// that no threshold lets pass.
struct TileIndex {
  std::uint32_t points = 0;
  std::uint32_t dims = 0;
  std::uint32_t checkpoints = 0;
  Buffer<float> values;      ///< [groups][dims][kGroupPoints], columns in tile order
  Buffer<float> thresholds;  ///< [groups][checkpoints + 1][kGroupPoints]; see PackedGroup
  Boxes group_boxes;
  Boxes tile_boxes;  ///< of kTileGroups groups each

  std::uint32_t groups() const { return (points + kGroupPoints - 1) / kGroupPoints; }
  std::uint32_t tiles() const { return (points + kScreenTile - 1) / kScreenTile; }
  PackedGroup group(std::size_t group) const {
    return {values.data() + group * dims * kGroupPoints,
            thresholds.data() + group * (checkpoints + 1) * kGroupPoints};
  }
  std::uint32_t group_size(std::uint32_t group) const {
    const std::uint32_t left = points - group * kGroupPoints;
    return left < kGroupPoints ? left : kGroupPoints;
  }
  std::uint32_t tile_size(std::uint32_t tile) const {
    const std::uint32_t left = points - tile * kScreenTile;
    return left < kScreenTile ? left : kScreenTile;
  }
  Window points_of_group(std::uint32_t group) const {
    return {group * kGroupPoints, group * kGroupPoints + group_size(group)};
  }
  Window points_of_tile(std::uint32_t tile) const {
    return {tile * kScreenTile, tile * kScreenTile + tile_size(tile)};
  }
};

/// After which columns a screen of points of `dims` columns compares its sums with thresholds.
Checkpoints make_checkpoints(std::uint32_t dims, bool short_circuit);

/// Packs the points of an index of the data, in O(n dims) time and memory. Throws
/// MemoryLimitExceeded, std::bad_alloc, Stopped.
TileIndex build_tiles(WorkerPool& pool, MemoryBudget& budget, const IndexLayout& layout,
                      const Dataset& data, const GridIndex& index, const Checkpoints& checkpoints,
                      const ScreenRadius& radius);

/// Whether all pairs of points, one of each box, surely match: `accept` is as in
/// boxes_surely_match().
bool surely_match(std::uint32_t columns, const double* a, const double* b, double accept);

/// Whether a pair of points, one of each box, may lie within true_reach().
bool may_meet(std::uint32_t columns, const double* a, const double* b, double reach);

}  // namespace gpujoin::cpu
