// Work on all rows of a dataset, spread over a pool of workers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/scan/scan.h"
#include "engine/request/dataset.h"
#include "engine/worker_pool.h"

namespace gpujoin::cpu {

inline constexpr std::uint64_t kBlockCoordinates = 1 << 17;  ///< coordinates a task reads

/// Runs task(first_row, end_row) over blocks of rows.
template <class Task>
void for_row_blocks(WorkerPool& pool, const Dataset& data, const Task& task) {
  if (data.rows == 0) return;
  const std::uint64_t block_rows =
      std::max<std::uint64_t>(kTilePoints, kBlockCoordinates / data.dims & ~7ull);
  const std::uint64_t blocks = (data.rows + block_rows - 1) / block_rows;
  pool.parallel_for(blocks, [&](std::size_t block, unsigned) {
    task(block * block_rows, std::min(data.rows, (block + 1) * block_rows));
  });
}

}  // namespace gpujoin::cpu
