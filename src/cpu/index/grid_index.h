// The CPU engine's index of one dataset: points sorted by grid cell and, within a cell, by one more
// column, their coordinates in tiles. Building only; who meets whom is range_join's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/sort_code.h"
#include "cpu/index/index_columns.h"
#include "cpu/scan/scan.h"
#include "engine/request/buffer.h"
#include "engine/request/dataset.h"
#include "engine/request/strategy.h"
#include "engine/strategy/screen_frame.h"
#include "engine/worker_pool.h"

namespace gpujoin::cpu {

/// What the two sides of a join have in common: one grid, one sorted column, one order of columns
/// in tiles.
struct IndexLayout {
  SortLayout order;
  ScreenFrame frame;            ///< its order is that of columns in tiles
  bool order_only;              ///< the index is rows and ids; the rest of it is not needed
  std::uint32_t open_keys = 0;  ///< as in IndexPlan
};

/// Points are named by position: finite ones first, sorted by cell, sort column and row; then the
/// points with a NaN or infinite coordinate, which match nothing and are in no cell. It does not
/// need the dataset any more.
struct GridIndex {
  std::uint32_t dims = 0;
  ScalarType scalar = ScalarType::kFloat64;
  std::uint32_t points = 0;           ///< finite ones
  Buffer<double> distances;           ///< to reference points, by row; see IndexColumns
  Buffer<std::uint32_t> rows;         ///< [rows of the dataset], position -> row
  Buffer<std::int64_t> ids;           ///< likewise, position -> id
  Buffer<double> sort_values;         ///< [points] the sort column; empty when unsorted
  Buffer<std::byte> tiles;            ///< see cpu/scan/scan.h
  Buffer<double> keys;                ///< [keys][points]; of those of IndexLayout::open_keys
  Buffer<std::uint64_t> cell_keys;    ///< [cells] of the non-empty cells, ascending
  Buffer<std::uint32_t> cell_starts;  ///< [cells + 1], the first position of each

  std::size_t cells() const { return cell_keys.size(); }
  const double* keys_of(std::uint32_t column) const {
    return keys.data() + std::size_t{column} * points;
  }
  /// The first cell whose key is not below `key`, searched outwards from `hint`: neighbours of
  /// consecutive cells are near each other in every cell order, in linear order mostly the next
  /// one.
  std::size_t find_cell(std::size_t hint, std::uint64_t key) const;
  /// Reads the coordinates of a point from its tile, columns in tile order.
  void load_point(std::uint32_t position, double* coordinates) const;
};

/// Sorts and copies a dataset, in O(n log n) time and O(n) memory (the sorted epsilon grid of
/// [Super-EGO], after [EGO], with non-empty cells only [GPU-SJ, section 3.2]). Throws
/// MemoryLimitExceeded, std::bad_alloc, Stopped.
GridIndex build_index(WorkerPool& pool, MemoryBudget& budget, const IndexLayout& layout,
                      IndexColumns columns);

/// The grid cell of a row; `distances` as in IndexColumns.
void cell_of_row(const GridGeometry& grid, const Dataset& data, const Buffer<double>& distances,
                 std::uint64_t row, std::uint32_t* cell);

}  // namespace gpujoin::cpu
