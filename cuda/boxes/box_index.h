// Boxes on the device: the rows of one side, or a part of them, in the order that a method wants,
// and the table of a layered grid [MLG-join]: the parts that cover each cell.
#pragma once

#include <cstdint>

#include "core/layered_grid.h"
#include "cuda/device/memory.h"
#include "cuda/device/tuning.h"
#include "engine/request/request.h"

namespace gpujoin::cuda {

/// Boxes in device memory as kernels see them.
struct BoxesView {
  const void* columns;         ///< [2 * dims][rows]: low bounds, then high ones
  const std::uint32_t* order;  ///< [rows] position -> row of the dataset
  const unsigned* boxes;       ///< how many rows are boxes: they come first
  std::uint32_t rows;
};

/// How a method orders boxes.
struct BoxOrder {
  BoxMethod method;
  LayeredGrid grid;         ///< kLayeredGrid: along its curve
  std::uint32_t dimension;  ///< kSortSweep: by their low bounds along this one
};

struct DeviceBoxes {
  DeviceBuffer<unsigned char> columns;
  DeviceBuffer<std::uint32_t> order;
  DeviceBuffer<unsigned> boxes;

  BoxesView view() const {
    return {columns.data(), order.data(), boxes.data(), static_cast<std::uint32_t>(order.size())};
  }
};

/// Rows of a dataset on the device as the caller has them, row by row; the first one is row
/// `first_row` of the dataset.
struct BoxRows {
  const void* numbers;  ///< [rows][2 * dims]
  std::uint32_t first_row;
  std::uint32_t rows;  ///< >= 1
  std::uint32_t dims;
  ScalarType scalar;
};

/// The most bytes that a row of so many bytes takes while it is put in order and afterwards, the
/// row as it came included.
inline std::uint64_t ordering_bytes(std::uint64_t row_bytes) {
  constexpr std::uint64_t kCode = sizeof(std::uint64_t) + sizeof(std::uint32_t);
  return 2 * row_bytes + 3 * kCode;  // codes before, after, and the sort's own
}

/// Asynchronous. Throws CudaError or MemoryLimitExceeded.
DeviceBoxes order_boxes(MemoryBudget& budget, const BoxRows& rows, const BoxOrder& order,
                        cudaStream_t stream);

/// The index of [MLG-join], see LayeredGrid.
struct LayeredTable {
  DeviceBuffer<unsigned long long> words;  ///< the records
  DeviceBuffer<unsigned char> blocks;      ///< [2 * dims][blocks] the boxes around blocks
};

GPUJOIN_HD inline std::uint32_t block_count(std::uint32_t rows) {
  return rows / kBlockBoxes + (rows % kBlockBoxes != 0 ? 1 : 0);
}

/// Builds the table of boxes in the order of the same grid. Asynchronous. Throws CudaError or
/// MemoryLimitExceeded.
LayeredTable build_layered_table(MemoryBudget& budget, const DeviceBoxes& boxes, std::uint32_t dims,
                                 ScalarType scalar, const LayeredGrid& grid, cudaStream_t stream);

}  // namespace gpujoin::cuda
