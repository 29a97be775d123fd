// The points of NearestTiles in bytes, a quarter of the memory: for one left point, whose search
// takes as long as memory needs to deliver the points. core/byte_screen.h has the proof.
#pragma once

#include <cstdint>

#include "cpu/index/nearest_tiles.h"

namespace gpujoin::cpu {

struct ByteTiles {
  std::uint32_t columns = 0;
  Buffer<std::int8_t> values;  ///< [groups][columns][kGroupPoints]
  Buffer<float> norms;         ///< [groups][kGroupPoints] squared, of the integers
  Buffer<double> steps;        ///< [groups]
  Buffer<double> errors;       ///< [groups], the maximum of a group's points

  const std::int8_t* group(std::size_t group) const {
    return values.data() + group * columns * kGroupPoints;
  }
};

/// The groups are those of the tiles. Takes O(n columns) time and memory. Throws
/// MemoryLimitExceeded, std::bad_alloc, Stopped.
ByteTiles build_byte_tiles(WorkerPool& pool, MemoryBudget& budget, const NearestTiles& tiles);

/// The first point of some tiles.
struct BytePoint {
  Buffer<float> values;  ///< [columns] integers
  double step = 1, norm = 0, error = 0;
};

BytePoint make_byte_point(MemoryBudget& budget, const NearestTiles& tiles);

}  // namespace gpujoin::cpu
