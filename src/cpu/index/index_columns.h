// The columns that an index of the CPU engine may rest on: the columns of the data and, after them,
// its keys, and the distances to reference points.
#pragma once

#include <cstdint>

#include "engine/request/buffer.h"
#include "engine/request/dataset.h"
#include "engine/strategy/reference_points.h"
#include "engine/worker_pool.h"

namespace gpujoin::cpu {

/// A row's value in one of them; `distances` as below.
inline double column_value(const Dataset& data, const Buffer<double>& distances, std::uint64_t row,
                           std::uint32_t column) {
  if (column < data.dims) return coordinate(data, row, column);
  column -= data.dims;
  if (column < data.key_columns) return key_of(data, row, column);
  return distances[(column - data.key_columns) * data.rows + row];
}

struct IndexColumns {
  const Dataset* data = nullptr;
  std::uint32_t reference_points = 0;
  Buffer<double> distances;  ///< [reference_points][data->rows]; of finite rows

  double value(std::uint64_t row, std::uint32_t column) const {
    return column_value(*data, distances, row, column);
  }
};

/// Computes the distances of every row. Throws MemoryLimitExceeded, std::bad_alloc, Stopped.
IndexColumns make_index_columns(WorkerPool& pool, MemoryBudget& budget, const Dataset& data,
                                const ReferencePoints& references);

}  // namespace gpujoin::cpu
