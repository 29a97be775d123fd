// The columns that an index of the CPU engine may rest on: those of the data and, after them, the
// distances to reference points.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/scan.h"
#include "cpu/worker_pool.h"
#include "engine/buffer.h"
#include "engine/dataset.h"
#include "engine/reference_points.h"

namespace gpujoin::cpu {

struct IndexColumns {
  const Dataset* data = nullptr;
  std::uint32_t reference_points = 0;
  Buffer<double> distances;  ///< [reference_points][data->rows]; of finite rows

  std::uint32_t count() const { return data->dims + reference_points; }
  double value(std::uint64_t row, std::uint32_t column) const {
    if (column < data->dims) return coordinate(*data, row, column);
    return distances[(column - data->dims) * data->rows + row];
  }
};

/// Measures the distances of every row. Throws MemoryLimitExceeded, std::bad_alloc, Stopped.
IndexColumns make_index_columns(WorkerPool& pool, MemoryBudget& budget, const Dataset& data,
                                const ReferencePoints& references);

inline constexpr std::uint64_t kBlockCoordinates = 1 << 17;  ///< coordinates a task reads

/// Runs task(first_row, end_row) over blocks of rows.
template <class Task>
void for_row_blocks(WorkerPool& pool, const Dataset& data, const Task& task) {
  const std::uint64_t block_rows =
      std::max<std::uint64_t>(kTilePoints, kBlockCoordinates / data.dims & ~7ull);
  const std::uint64_t blocks = (data.rows + block_rows - 1) / block_rows;
  pool.parallel_for(blocks, [&](std::size_t block, unsigned) {
    task(block * block_rows, std::min(data.rows, (block + 1) * block_rows));
  });
}

}  // namespace gpujoin::cpu
