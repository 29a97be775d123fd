// One side of a nearest-neighbour join by dense tiles: points in the columns of a frame, sorted so
// that those of a tile lie together, and a ball around each tile.
#pragma once

#include <cstdint>

#include "cpu/index/nearest_frame.h"
#include "cpu/scan/tile_scan.h"
#include "engine/request/buffer.h"
#include "engine/request/dataset.h"
#include "engine/worker_pool.h"

namespace gpujoin::cpu {

/// Points are named by position, in the order of a k-d tree; the last group is filled up with
/// points that no threshold lets pass.
struct NearestTiles {
  std::uint32_t points = 0;  ///< finite ones, which come first
  std::uint32_t columns = 0;
  std::uint32_t checkpoints = 0;
  Buffer<std::uint32_t> rows;  ///< [rows of the dataset] position -> row
  Buffer<std::int64_t> ids;    ///< [rows of the dataset] position -> id
  Buffer<float> values;        ///< [groups][columns][kGroupPoints]
  Buffer<float> norms;  ///< [groups][checkpoints][kGroupPoints]: squared, up to each checkpoint
  Buffer<float> thresholds;  ///< [groups][checkpoints + 1][kGroupPoints] as right points
  Buffer<float> errors;      ///< [groups][kGroupPoints], rounded up
  float most_error = 0;
  Buffer<double> centers;  ///< [tiles][columns]
  Buffer<double> radii;    ///< [tiles] the largest distance of a point from the center

  std::uint32_t groups() const { return (points + kGroupPoints - 1) / kGroupPoints; }
  std::uint32_t tiles() const { return (groups() + kTileGroups - 1) / kTileGroups; }
  std::uint32_t group_size(std::uint32_t group) const {
    const std::uint32_t left = points - group * kGroupPoints;
    return left < kGroupPoints ? left : kGroupPoints;
  }
  PackedGroup group(std::size_t group) const {
    return {values.data() + group * columns * kGroupPoints,
            thresholds.data() + group * (checkpoints + 1) * kGroupPoints};
  }
  static constexpr std::uint32_t kTileGroups = 4;
};

/// In O(n log n + n columns) time and O(n columns) memory. Throws MemoryLimitExceeded,
/// std::bad_alloc, Stopped.
NearestTiles build_nearest_tiles(WorkerPool& pool, MemoryBudget& budget, const NearestFrame& frame,
                                 const Dataset& data);

}  // namespace gpujoin::cpu
