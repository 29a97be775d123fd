#include "cpu/index/grid_index.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "cpu/index/large_buffer.h"
#include "cpu/index/parallel_sort.h"
#include "cpu/index/row_blocks.h"

namespace gpujoin::cpu {
namespace {

constexpr std::uint64_t kBlockPositions = 1 << 16;  ///< that a task lists

std::uint64_t code_of_row(const SortLayout& order, const IndexColumns& columns, std::uint64_t row) {
  if (!is_finite_row(*columns.data, row)) return kNotFinite;
  std::uint32_t cell[kMaxGridDimensions];
  cell_of_row(order.grid, *columns.data, columns.distances, row, cell);
  const bool sorted = order.sort_column != kNoColumn;
  return sort_code(order, cell,
                   sorted ? columns.value(row, static_cast<std::uint32_t>(order.sort_column)) : 0);
}

Buffer<SortItem> sorted_points(WorkerPool& pool, MemoryBudget& budget, const SortLayout& order,
                               const IndexColumns& columns) {
  const Dataset& data = *columns.data;
  Buffer<SortItem> items = large_buffer<SortItem>(budget, data.rows);
  for_row_blocks(pool, data, [&](std::uint64_t first, std::uint64_t end) {
    for (std::uint64_t row = first; row < end; ++row)
      items[row] = {.lo = row, .hi = code_of_row(order, columns, row)};
  });
  parallel_sort(pool, budget, items);
  return items;
}

/// Runs task(first, end) over blocks of positions.
template <class Task>
void for_blocks(WorkerPool& pool, std::uint64_t positions, const Task& task) {
  pool.parallel_for((positions + kBlockPositions - 1) / kBlockPositions,
                    [&](std::size_t block, unsigned) {
                      task(block * kBlockPositions,
                           std::min<std::uint64_t>(positions, (block + 1) * kBlockPositions));
                    });
}

/// Orders rows by value and row, which are in the order of rows: the points of one code, which
/// stands for many values.
void order_ties(const IndexColumns& columns, std::uint32_t column, std::uint32_t* begin,
                std::uint32_t* end) {
  const auto comes_first = [&](std::uint32_t a, std::uint32_t b) {
    const double x = columns.value(a, column), y = columns.value(b, column);
    return x != y ? x < y : a < b;
  };
  if (!std::is_sorted(begin, end, comes_first)) std::sort(begin, end, comes_first);
}

/// Rows in the order of the index. A task has the runs of one code that begin in its block.
void list_rows(WorkerPool& pool, const Buffer<SortItem>& items, const SortLayout& order,
               const IndexColumns& columns, GridIndex& index) {
  for_blocks(pool, items.size(), [&](std::uint64_t first, std::uint64_t end) {
    std::uint64_t begin = first;
    while (begin > 0 && begin < end && items[begin].hi == items[begin - 1].hi) ++begin;
    while (begin < end) {
      const std::uint64_t code = items[begin].hi;
      std::uint64_t at = begin;
      for (; at < items.size() && items[at].hi == code; ++at)
        index.rows[at] = static_cast<std::uint32_t>(items[at].lo);
      if (at - begin > 1 && order.sort_column != kNoColumn && code != kNotFinite)
        order_ties(columns, static_cast<std::uint32_t>(order.sort_column),
                   index.rows.data() + begin, index.rows.data() + at);
      begin = at;
    }
  });
}

void list_ids(WorkerPool& pool, const Dataset& data, GridIndex& index) {
  for_blocks(pool, data.rows, [&](std::uint64_t first, std::uint64_t end) {
    for (std::uint64_t i = first; i < end; ++i) index.ids[i] = id_of(data, index.rows[i]);
  });
}

/// Keys in the order of the index, of the columns that are compared.
void fill_keys(WorkerPool& pool, MemoryBudget& budget, const IndexLayout& layout,
               const Dataset& data, GridIndex& index) {
  if (layout.open_keys == 0) return;
  index.keys = large_buffer<double>(budget, std::uint64_t{data.key_columns} * index.points);
  for_blocks(pool, index.points, [&](std::uint64_t first, std::uint64_t end) {
    for (std::uint32_t k = 0; k < data.key_columns; ++k)
      for (std::uint64_t i = first; (layout.open_keys >> k & 1) != 0 && i < end; ++i)
        index.keys[std::uint64_t{k} * index.points + i] = key_of(data, index.rows[i], k);
  });
}

/// Sort values come with the coordinates: rows lie anywhere, and are read once.
template <class T>
void fill_tiles(WorkerPool& pool, const IndexLayout& layout, const IndexColumns& columns,
                GridIndex& index) {
  constexpr std::size_t kAhead = 32;  // rows on their way to the cache
  const Dataset& data = *columns.data;
  const std::uint32_t dims = data.dims;
  const bool sorted = layout.order.sort_column != kNoColumn;
  T* const tiles = reinterpret_cast<T*>(index.tiles.data());
  const std::size_t tile_count = (index.points + kTilePoints - 1) / kTilePoints;
  const std::size_t task_tiles = std::max<std::size_t>(1, kBlockCoordinates / kTilePoints / dims);
  pool.parallel_for((tile_count + task_tiles - 1) / task_tiles, [&](std::size_t task, unsigned) {
    const std::size_t end = std::min(tile_count, (task + 1) * task_tiles);
    for (std::size_t tile = task * task_tiles; tile < end; ++tile) {
      for (std::uint32_t lane = 0; lane < kTilePoints; ++lane) {
        const std::size_t position = tile * kTilePoints + lane;
        T* const place = tile_place(tiles, position, dims);
        if (position + kAhead < index.points)
          __builtin_prefetch(point<T>(data, index.rows[position + kAhead]));
        if (position >= index.points) {
          for (std::uint32_t d = 0; d < dims; ++d)
            place[std::size_t{d} * kTilePoints] = std::numeric_limits<T>::quiet_NaN();
          continue;
        }
        const std::uint32_t row = index.rows[position];
        const T* const values = point<T>(data, row);
        for (std::uint32_t d = 0; d < dims; ++d)
          place[std::size_t{d} * kTilePoints] = values[layout.frame.order[d]];
        if (sorted)
          index.sort_values[position] =
              columns.value(row, static_cast<std::uint32_t>(layout.order.sort_column));
      }
    }
  });
}

/// Cells are counted block by block, so that every block knows the number of its first one.
void list_cells(WorkerPool& pool, MemoryBudget& budget, const Buffer<SortItem>& items,
                const SortLayout& order, GridIndex& index) {
  const auto begins_cell = [&](std::uint64_t i) {
    return i == 0 ||
           cell_key_of_code(order, items[i].hi) != cell_key_of_code(order, items[i - 1].hi);
  };
  Buffer<std::uint64_t> number(budget, index.points / kBlockPositions + 1);
  for_blocks(pool, index.points, [&](std::uint64_t first, std::uint64_t end) {
    std::uint64_t cells = 0;
    for (std::uint64_t i = first; i < end; ++i) cells += begins_cell(i) ? 1 : 0;
    number[first / kBlockPositions] = cells;
  });
  std::uint64_t cells = 0;
  for (std::uint64_t first = 0; first < index.points; first += kBlockPositions)
    cells += std::exchange(number[first / kBlockPositions], cells);
  index.cell_keys = Buffer<std::uint64_t>(budget, cells);
  index.cell_starts = Buffer<std::uint32_t>(budget, cells + 1);
  for_blocks(pool, index.points, [&](std::uint64_t first, std::uint64_t end) {
    std::uint64_t cell = number[first / kBlockPositions];
    for (std::uint64_t i = first; i < end; ++i) {
      if (!begins_cell(i)) continue;
      index.cell_keys[cell] = cell_key_of_code(order, items[i].hi);
      index.cell_starts[cell++] = static_cast<std::uint32_t>(i);
    }
  });
  index.cell_starts[cells] = index.points;
}

}  // namespace

void cell_of_row(const GridGeometry& grid, const Dataset& data, const Buffer<double>& distances,
                 std::uint64_t row, std::uint32_t* cell) {
  for (std::uint32_t d = 0; d < grid.dims; ++d)
    cell[d] = cell_coordinate(grid, d, column_value(data, distances, row, grid.column[d]));
}

void GridIndex::load_point(std::uint32_t position, double* coordinates) const {
  const auto load = [&](const auto* points) {
    const auto* const place = tile_place(points, position, dims);
    for (std::uint32_t d = 0; d < dims; ++d)
      coordinates[d] = static_cast<double>(place[std::size_t{d} * kTilePoints]);
  };
  if (scalar == ScalarType::kFloat32)
    load(reinterpret_cast<const float*>(tiles.data()));
  else
    load(reinterpret_cast<const double*>(tiles.data()));
}

std::size_t GridIndex::find_cell(std::size_t hint, std::uint64_t key) const {
  const Buffer<std::uint64_t>& keys = cell_keys;
  const std::size_t size = keys.size();
  std::size_t low = 0, high = size, step = 1;
  if (hint < size && keys[hint] < key) {
    low = hint + 1;
    while (low + step < size && keys[low + step] < key) {
      low += step + 1;
      step *= 2;
    }
    high = std::min(size, low + step);
  } else {
    high = std::min(hint, size);
    while (high >= step && keys[high - step] >= key) {
      high -= step;
      step *= 2;
    }
    low = high >= step ? high - step : 0;
  }
  return std::lower_bound(keys.begin() + low, keys.begin() + high, key) - keys.begin();
}

GridIndex build_index(WorkerPool& pool, MemoryBudget& budget, const IndexLayout& layout,
                      IndexColumns columns) {
  const Dataset& data = *columns.data;
  GridIndex index{};
  index.dims = data.dims;
  index.scalar = data.scalar;
  index.rows = large_buffer<std::uint32_t>(budget, data.rows);
  index.ids = large_buffer<std::int64_t>(budget, data.rows);
  {
    const SortLayout& order = layout.order;
    const Buffer<SortItem> items = sorted_points(pool, budget, order, columns);
    const SortItem* const first_not_finite = std::partition_point(
        items.begin(), items.end(), [](const SortItem& item) { return item.hi != kNotFinite; });
    index.points = static_cast<std::uint32_t>(first_not_finite - items.begin());
    list_rows(pool, items, order, columns, index);
    if (!layout.order_only) list_cells(pool, budget, items, order, index);
  }
  list_ids(pool, data, index);
  if (layout.order_only) return index;
  if (layout.order.sort_column != kNoColumn)
    index.sort_values = large_buffer<double>(budget, index.points);
  const std::size_t tiles = (std::size_t{index.points} + kTilePoints - 1) / kTilePoints;
  index.tiles =
      large_buffer<std::byte>(budget, tiles * kTilePoints * data.dims * scalar_bytes(data.scalar));
  if (data.scalar == ScalarType::kFloat32)
    fill_tiles<float>(pool, layout, columns, index);
  else
    fill_tiles<double>(pool, layout, columns, index);
  fill_keys(pool, budget, layout, data, index);
  index.distances = std::move(columns.distances);
  return index;
}

}  // namespace gpujoin::cpu
