#include "cpu/index/box_index.h"

#include <algorithm>
#include <atomic>

#include "core/score.h"
#include "core/sort_code.h"
#include "cpu/index/parallel_sort.h"
#include "cpu/index/row_blocks.h"

namespace gpujoin::cpu {
namespace {

template <class T>
class Builder {
 public:
  Builder(WorkerPool& pool, MemoryBudget& budget, const BoxStrategy& strategy, BoxIndex& index)
      : pool_(pool), budget_(budget), strategy_(strategy), index_(index) {}

  void build() {
    const Dataset& data = *index_.data;
    {
      const Buffer<SortItem> items = sorted_rows();
      index_.boxes = static_cast<std::uint32_t>(
          std::partition_point(items.begin(), items.end(),
                               [](const SortItem& item) { return item.hi != kNotFinite; }) -
          items.begin());
      index_.ids = Buffer<std::int64_t>(budget_, data.rows);
      for_row_blocks(pool_, data, [&](std::uint64_t first, std::uint64_t end) {
        for (std::uint64_t i = first; i < end; ++i) index_.ids[i] = id_of(data, items[i].lo);
      });
      index_.tiles = make_tiles(index_.boxes, [&](std::uint32_t position, T* box) {
        std::copy_n(box_of_row<T>(data, items[position].lo), 2 * index_.dims, box);
      });
    }
    if (strategy_.method == BoxMethod::kSortSweep) list_lows();
    if (strategy_.method != BoxMethod::kLayeredGrid) return;
    index_.bounds = make_tiles((index_.boxes + kBlockBoxes - 1) / kBlockBoxes,
                               [&](std::uint32_t block, T* box) { box_around(block, box); });
    fill_table();
  }

 private:
  /// Boxes come in the order of their codes.
  std::uint64_t code_of(const T* box) const {
    if (!is_box(box, index_.dims)) return kNotFinite;
    switch (strategy_.method) {
      case BoxMethod::kLayeredGrid:
        return curve_code(index_.grid, box, index_.dims);
      case BoxMethod::kSortSweep:
        return score_key(false, static_cast<double>(box[strategy_.dimension]));
      default:
        return 0;
    }
  }

  Buffer<SortItem> sorted_rows() {
    const Dataset& data = *index_.data;
    Buffer<SortItem> items(budget_, data.rows);
    for_row_blocks(pool_, data, [&](std::uint64_t first, std::uint64_t end) {
      for (std::uint64_t row = first; row < end; ++row)
        items[row] = {.lo = row, .hi = code_of(box_of_row<T>(data, row))};
    });
    parallel_sort(pool_, budget_, items);
    return items;
  }

  /// Tiles of the boxes that load(position, box) gives. Places past the last box are never read.
  template <class Load>
  Buffer<std::byte> make_tiles(std::uint32_t boxes, const Load& load) {
    const std::uint32_t numbers = 2 * index_.dims;
    const std::size_t tiles = (std::size_t{boxes} + kTileBoxes - 1) / kTileBoxes;
    Buffer<std::byte> buffer(budget_, tiles * kTileBoxes * numbers * sizeof(T));
    T* const places = reinterpret_cast<T*>(buffer.data());
    constexpr std::size_t kTaskTiles = 512;
    pool_.parallel_for((tiles + kTaskTiles - 1) / kTaskTiles, [&](std::size_t task, unsigned) {
      const std::size_t end = std::min(tiles, (task + 1) * kTaskTiles);
      for (std::size_t tile = task * kTaskTiles; tile < end; ++tile) {
        for (std::uint32_t lane = 0; lane < kTileBoxes; ++lane) {
          const std::size_t position = tile * kTileBoxes + lane;
          T box[2 * kMaxBoxDimensions] = {};
          if (position < boxes) load(static_cast<std::uint32_t>(position), box);
          for (std::uint32_t i = 0; i < numbers; ++i)
            places[(tile * numbers + i) * kTileBoxes + lane] = box[i];
        }
      }
    });
    return buffer;
  }

  void list_lows() {
    index_.lows = Buffer<double>(budget_, index_.boxes);
    constexpr std::size_t kTaskBoxes = 1 << 16;
    const std::size_t tasks = (index_.boxes + kTaskBoxes - 1) / kTaskBoxes;
    pool_.parallel_for(tasks, [&](std::size_t task, unsigned) {
      const std::size_t end = std::min<std::size_t>(index_.boxes, (task + 1) * kTaskBoxes);
      for (std::size_t position = task * kTaskBoxes; position < end; ++position) {
        T box[2 * kMaxBoxDimensions];
        index_.load_box(static_cast<std::uint32_t>(position), box);
        index_.lows[position] = static_cast<double>(box[strategy_.dimension]);
      }
    });
  }

  void box_around(std::uint32_t block, T* around) const {
    const std::uint32_t first = block * kBlockBoxes;
    const std::uint32_t end = std::min(index_.boxes, first + kBlockBoxes);
    index_.load_box(first, around);
    for (std::uint32_t position = first + 1; position < end; ++position) {
      T box[2 * kMaxBoxDimensions];
      index_.load_box(position, box);
      for (std::uint32_t d = 0; d < index_.dims; ++d) {
        around[d] = std::min(around[d], box[d]);
        around[index_.dims + d] = std::max(around[index_.dims + d], box[index_.dims + d]);
      }
    }
  }

  void fill_table() {
    const LayeredGrid& grid = index_.grid;
    index_.table = Buffer<std::uint64_t>(budget_, grid.table_words());
    std::fill(index_.table.begin(), index_.table.end(), 0);
    pool_.parallel_for(grid.parts, [&](std::size_t part, unsigned) {
      const std::size_t first = part * grid.part_boxes;
      const std::size_t end = std::min<std::size_t>(index_.boxes, first + grid.part_boxes);
      for (std::size_t position = first; position < end; ++position) {
        T box[2 * kMaxBoxDimensions];
        index_.load_box(static_cast<std::uint32_t>(position), box);
        const CellRectangle cells = cells_of_box(grid, box, index_.dims, 0);
        if (cells.cells > kMostCellsOfBox) {
          mark(grid.cells, part);
          continue;
        }
        for (std::uint32_t i = 0; i < cells.cells; ++i)
          mark(cell_of_rectangle(grid, cells, i), part);
      }
    });
  }

  /// Parts of other workers have bits in the same words.
  void mark(std::uint32_t cell, std::size_t part) {
    std::uint64_t* const record = index_.table.data() + cell * index_.grid.record_words();
    const std::size_t word = part / kWordBits;
    const auto set = [](std::uint64_t& bits, std::size_t bit) {
      const std::atomic_ref shared(bits);
      const std::uint64_t mask = std::uint64_t{1} << bit;
      if (!(shared.load(std::memory_order_relaxed) & mask))
        shared.fetch_or(mask, std::memory_order_relaxed);
    };
    set(record[0], word);
    set(record[1 + word], part % kWordBits);
  }

  WorkerPool& pool_;
  MemoryBudget& budget_;
  const BoxStrategy& strategy_;
  BoxIndex& index_;
};

}  // namespace

BoxIndex build_box_index(WorkerPool& pool, MemoryBudget& budget, const BoxStrategy& strategy,
                         const LayeredGrid& grid, const Dataset& data) {
  BoxIndex index{};
  index.data = &data;
  index.dims = data.dims / 2;
  index.grid = grid;
  if (data.scalar == ScalarType::kFloat32)
    Builder<float>(pool, budget, strategy, index).build();
  else
    Builder<double>(pool, budget, strategy, index).build();
  return index;
}

}  // namespace gpujoin::cpu
