#include "cpu/index/grid_index.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "cpu/index/parallel_sort.h"
#include "cpu/index/row_blocks.h"

namespace gpujoin::cpu {
namespace {

/// A point on its way into the index. Codes order points as the index does, but for ties.
struct SortItem {
  std::uint64_t code;
  std::uint32_t row;
};

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
  Buffer<SortItem> items(budget, data.rows);
  for_row_blocks(pool, data, [&](std::uint64_t first, std::uint64_t end) {
    for (std::uint64_t row = first; row < end; ++row)
      items[row] = {code_of_row(order, columns, row), static_cast<std::uint32_t>(row)};
  });
  parallel_sort(pool, budget, items, [&](const SortItem& a, const SortItem& b) {
    if (a.code != b.code) return a.code < b.code;
    if (order.sort_column != kNoColumn && a.code != kNotFinite) {
      const auto column = static_cast<std::uint32_t>(order.sort_column);
      const double x = columns.value(a.row, column);
      const double y = columns.value(b.row, column);
      if (x != y) return x < y;
    }
    return a.row < b.row;
  });
  return items;
}

template <class T>
void fill_tiles(WorkerPool& pool, const IndexLayout& layout, const Dataset& data,
                GridIndex& index) {
  const std::uint32_t dims = data.dims;
  T* const tiles = reinterpret_cast<T*>(index.tiles.data());
  const std::size_t tile_count = (index.points + kTilePoints - 1) / kTilePoints;
  const std::size_t task_tiles = std::max<std::size_t>(1, kBlockCoordinates / kTilePoints / dims);
  pool.parallel_for((tile_count + task_tiles - 1) / task_tiles, [&](std::size_t task, unsigned) {
    const std::size_t end = std::min(tile_count, (task + 1) * task_tiles);
    for (std::size_t tile = task * task_tiles; tile < end; ++tile) {
      for (std::uint32_t lane = 0; lane < kTilePoints; ++lane) {
        const std::size_t position = tile * kTilePoints + lane;
        T* const place = tiles + tile * kTilePoints * dims + lane;
        const T* const values =
            position < index.points ? point<T>(data, index.rows[position]) : nullptr;
        for (std::uint32_t d = 0; d < dims; ++d)
          place[std::size_t{d} * kTilePoints] = values != nullptr
                                                    ? values[layout.frame.order[d]]
                                                    : std::numeric_limits<T>::quiet_NaN();
      }
    }
  });
}

void list_cells(MemoryBudget& budget, const Buffer<SortItem>& items, const SortLayout& order,
                GridIndex& index) {
  std::size_t cells = 0;
  for (std::uint32_t i = 0; i < index.points; ++i)
    cells += i == 0 ||
             cell_key_of_code(order, items[i].code) != cell_key_of_code(order, items[i - 1].code);
  index.cell_keys = Buffer<std::uint64_t>(budget, cells);
  index.cell_starts = Buffer<std::uint32_t>(budget, cells + 1);
  std::size_t cell = 0;
  for (std::uint32_t i = 0; i < index.points; ++i) {
    const std::uint64_t key = cell_key_of_code(order, items[i].code);
    if (i > 0 && key == index.cell_keys[cell - 1]) continue;
    index.cell_keys[cell] = key;
    index.cell_starts[cell++] = i;
  }
  index.cell_starts[cells] = index.points;
}

}  // namespace

void cell_of_row(const GridGeometry& grid, const Dataset& data, const Buffer<double>& distances,
                 std::uint64_t row, std::uint32_t* cell) {
  for (std::uint32_t d = 0; d < grid.dims; ++d)
    cell[d] = cell_coordinate(grid, d, column_value(data, distances, row, grid.column[d]));
}

void GridIndex::load_point(std::uint32_t position, double* coordinates) const {
  const auto load = [&](const auto* places) {
    const std::size_t tile = position / kTilePoints;
    places += tile * kTilePoints * dims + position % kTilePoints;
    for (std::uint32_t d = 0; d < dims; ++d)
      coordinates[d] = static_cast<double>(places[std::size_t{d} * kTilePoints]);
  };
  if (scalar == ScalarType::kFloat32)
    load(reinterpret_cast<const float*>(tiles.data()));
  else
    load(reinterpret_cast<const double*>(tiles.data()));
}

GridIndex build_index(WorkerPool& pool, MemoryBudget& budget, const IndexLayout& layout,
                      IndexColumns columns) {
  const Dataset& data = *columns.data;
  GridIndex index{};
  index.dims = data.dims;
  index.scalar = data.scalar;
  index.rows = Buffer<std::uint32_t>(budget, data.rows);
  index.ids = Buffer<std::int64_t>(budget, data.rows);
  {
    const SortLayout& order = layout.order;
    const bool sorted = order.sort_column != kNoColumn;
    const Buffer<SortItem> items = sorted_points(pool, budget, order, columns);
    const SortItem* const first_not_finite = std::partition_point(
        items.begin(), items.end(), [](const SortItem& item) { return item.code != kNotFinite; });
    index.points = static_cast<std::uint32_t>(first_not_finite - items.begin());
    if (sorted) index.sort_values = Buffer<double>(budget, index.points);
    for_row_blocks(pool, data, [&](std::uint64_t first, std::uint64_t end) {
      for (std::uint64_t i = first; i < end; ++i) {
        const std::uint32_t row = items[i].row;
        index.rows[i] = row;
        index.ids[i] = id_of(data, row);
        if (sorted && i < index.points)
          index.sort_values[i] = columns.value(row, static_cast<std::uint32_t>(order.sort_column));
      }
    });
    index.distances = std::move(columns.distances);
    if (layout.order_only) return index;
    list_cells(budget, items, order, index);
  }
  const std::size_t tiles = (std::size_t{index.points} + kTilePoints - 1) / kTilePoints;
  index.tiles =
      Buffer<std::byte>(budget, tiles * kTilePoints * data.dims * scalar_bytes(data.scalar));
  if (data.scalar == ScalarType::kFloat32)
    fill_tiles<float>(pool, layout, data, index);
  else
    fill_tiles<double>(pool, layout, data, index);
  return index;
}

}  // namespace gpujoin::cpu
