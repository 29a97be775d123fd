// The CPU engine's index of one side of a join of boxes: boxes in the order that a method asks for,
// their bounds in tiles, and the method's index of them. Building only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/layered_grid.h"
#include "cpu/scan/box_scan.h"
#include "engine/request/buffer.h"
#include "engine/request/dataset.h"
#include "engine/strategy/box_strategy.h"
#include "engine/worker_pool.h"

namespace gpujoin::cpu {

/// Consecutive boxes that are tested by the box around them before they are tested themselves.
inline constexpr std::uint32_t kBlockBoxes = kTileBoxes;
/// Boxes of a part of a layered grid: the boxes around its blocks make up one tile.
inline constexpr std::uint32_t kPartBoxes = kTileBoxes * kBlockBoxes;

/// The numbers of a row: [2 * dims].
template <class T>
const T* box_of_row(const Dataset& data, std::uint64_t row) {
  return point<T>(data, row);
}

/// Boxes are named by position: true boxes first, in the order of the method; then rows that are no
/// boxes, which match nothing.
struct BoxIndex {
  const Dataset* data;
  std::uint32_t dims;        ///< of a box
  std::uint32_t boxes;       ///< true ones
  Buffer<std::int64_t> ids;  ///< [data->rows], position -> id
  Buffer<std::byte> tiles;   ///< see cpu/scan/box_scan.h

  Buffer<double> lows;  ///< [boxes], ascending; BoxMethod::kSortSweep only

  // BoxMethod::kLayeredGrid only.
  LayeredGrid grid;
  Buffer<std::uint64_t> table;
  Buffer<std::byte> bounds;  ///< tiles of the boxes around each kBlockBoxes boxes

  /// Reads the bounds of a box from its tile.
  template <class T>
  void load_box(std::uint32_t position, T* box) const {
    const T* const bounds_along = reinterpret_cast<const T*>(tiles.data()) +
                                  std::size_t{position / kTileBoxes} * kTileBoxes * 2 * dims +
                                  position % kTileBoxes;
    for (std::uint32_t i = 0; i < 2 * dims; ++i) box[i] = bounds_along[std::size_t{i} * kTileBoxes];
  }
};

/// Sorts and copies a dataset as the strategy asks. Throws MemoryLimitExceeded, std::bad_alloc,
/// Stopped.
BoxIndex build_box_index(WorkerPool& pool, MemoryBudget& budget, const BoxStrategy& strategy,
                         const LayeredGrid& grid, const Dataset& data);

}  // namespace gpujoin::cpu
