#include "cpu/index/kd_tree.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <vector>

#include "cpu/index/large_buffer.h"
#include "cpu/index/parallel_sort.h"
#include "cpu/index/row_blocks.h"

namespace gpujoin::cpu {
namespace {

/// Up to so many columns a row is sorted with all its coordinates: looking them up for each level
/// would take longer than moving them.
constexpr std::uint32_t kMovedColumns = 3;

/// A row with its coordinates; of more columns, with the one that its node is split by.
template <std::uint32_t kColumns>
struct SplitItem {
  double values[kColumns];
  std::uint32_t row;
};

/// Moves the items with smaller values to the front, without a branch that would be guessed wrong
/// every other time. Returns where the others begin.
template <class Item, class IsFirst>
Item* partition(Item* begin, Item* end, const IsFirst& is_first) {
  Item* others = begin;
  for (Item* at = begin; at != end; ++at) {
    const Item item = *at;
    *at = *others;
    *others = item;
    others += is_first(item) ? 1 : 0;
  }
  return others;
}

/// As std::nth_element by a column: no item before `middle` is larger than one from there on.
/// Pivots are quantiles of samples, so that two or three passes do.
template <class Item>
void select(Item* begin, Item* middle, Item* end, std::uint32_t column) {
  constexpr int kMostPasses = 32;
  constexpr std::ptrdiff_t kFew = 128, kSample = 32;
  for (int pass = 0; pass < kMostPasses && end - begin > kFew; ++pass) {
    double sample[kSample];
    for (std::ptrdiff_t i = 0; i < kSample; ++i)
      sample[i] = begin[(end - begin) * i / kSample].values[column];
    double* const at = sample + (middle - begin) * kSample / (end - begin);
    std::nth_element(sample, at, sample + kSample);
    const double pivot = *at;
    Item* const others =
        partition(begin, end, [=](const Item& item) { return item.values[column] < pivot; });
    if (others > middle) {
      end = others;
    } else {
      Item* const beyond =
          partition(others, end, [=](const Item& item) { return item.values[column] <= pivot; });
      if (beyond > middle) return;  // it is a pivot
      begin = beyond;
    }
  }
  std::nth_element(begin, middle, end, [=](const Item& one, const Item& other) {
    return one.values[column] < other.values[column];
  });
}

/// The finite rows, then the others, each in their order.
std::uint32_t list_rows(WorkerPool& pool, MemoryBudget& budget, const Dataset& data,
                        Buffer<std::uint32_t>& rows) {
  Buffer<std::uint8_t> finite(budget, data.rows);
  for_row_blocks(pool, data, [&](std::uint64_t first, std::uint64_t end) {
    for (std::uint64_t row = first; row < end; ++row) finite[row] = is_finite_row(data, row);
  });
  std::uint32_t points = 0;
  for (std::uint64_t row = 0; row < data.rows; ++row)
    if (finite[row]) rows[points++] = static_cast<std::uint32_t>(row);
  std::uint64_t at = points;
  for (std::uint64_t row = 0; row < data.rows; ++row)
    if (!finite[row]) rows[at++] = static_cast<std::uint32_t>(row);
  return points;
}

void set_ids(WorkerPool& pool, const Dataset& data, RowOrder& order) {
  for_row_blocks(pool, data, [&](std::uint64_t first, std::uint64_t end) {
    for (std::uint64_t i = first; i < end; ++i) order.ids[i] = id_of(data, order.rows[i]);
  });
}

template <std::uint32_t kColumns>
class Splitter {
 public:
  Splitter(const Dataset& data, KdTree& tree, Buffer<SplitItem<kColumns>>& items)
      : data_(data), tree_(tree), items_(items) {}

  void load(std::uint32_t position) const {
    SplitItem<kColumns>& item = items_[position];
    item.row = tree_.rows[position];
    for (std::uint32_t column = 0; moves() && column < kColumns; ++column)
      item.values[column] = coordinate(data_, item.row, column);
  }

  /// Splits a node in two halves along the column in which a sample of its points spreads most.
  void split(std::uint32_t level, std::uint64_t at) const {
    KdTree::Split& split = tree_.splits[(std::uint64_t{1} << level) + at];
    split = {std::numeric_limits<double>::infinity(), 0};
    const std::uint32_t begin = tree_.first_tile(level, at) * kTilePoints;
    const std::uint32_t middle = tree_.first_tile(level + 1, 2 * at + 1) * kTilePoints;
    const std::uint32_t end = std::min(tree_.points, tree_.first_tile(level, at + 1) * kTilePoints);
    if (middle <= begin || middle >= end) return;
    const std::uint32_t column = widest_column(begin, end);
    for (std::uint32_t i = begin; !moves() && i < end; ++i)
      items_[i].values[0] = coordinate(data_, items_[i].row, column);
    const std::uint32_t value = moves() ? column : 0;
    select(items_.data() + begin, items_.data() + middle, items_.data() + end, value);
    split = {items_[middle].values[value], column};
  }

  /// A node and all below it, one child after the other: the points of a small one are in the
  /// cache.
  void split_below(std::uint32_t level, std::uint64_t at) const {
    if (level == tree_.levels) return;
    split(level, at);
    split_below(level + 1, 2 * at);
    split_below(level + 1, 2 * at + 1);
  }

 private:
  /// Whether items have all coordinates.
  bool moves() const { return data_.dims <= kColumns; }

  double value_of(std::uint32_t position, std::uint32_t column) const {
    const SplitItem<kColumns>& item = items_[position];
    return moves() ? item.values[column] : coordinate(data_, item.row, column);
  }

  std::uint32_t widest_column(std::uint32_t begin, std::uint32_t end) const {
    constexpr std::uint32_t kSample = 64;
    const std::uint32_t step = std::max(1u, (end - begin) / kSample);
    std::uint32_t widest = 0;
    double most = -1;
    for (std::uint32_t column = 0; column < data_.dims; ++column) {
      double low = std::numeric_limits<double>::infinity(), high = -low;
      for (std::uint32_t i = begin; i < end; i += step) {
        const double x = value_of(i, column);
        low = std::min(low, x);
        high = std::max(high, x);
      }
      if (high / 2 - low / 2 <= most) continue;
      most = high / 2 - low / 2;
      widest = column;
    }
    return widest;
  }

  const Dataset& data_;
  KdTree& tree_;
  Buffer<SplitItem<kColumns>>& items_;
};

/// Orders the listed rows and sets splits. Level by level until there is a node for each worker and
/// more, then subtree by subtree.
template <std::uint32_t kColumns>
void split_rows(WorkerPool& pool, MemoryBudget& budget, const Dataset& data, KdTree& tree) {
  constexpr std::uint32_t kSubtreesPerWorker = 8, kTaskRows = 1 << 16;
  Buffer<SplitItem<kColumns>> items = large_buffer<SplitItem<kColumns>>(budget, tree.points);
  const Splitter<kColumns> splitter(data, tree, items);
  const auto for_all = [&](const auto& body) {
    pool.parallel_for((tree.points + kTaskRows - 1) / kTaskRows, [&](std::size_t task, unsigned) {
      const auto first = static_cast<std::uint32_t>(task) * kTaskRows;
      for (std::uint32_t i = first; i < std::min(tree.points, first + kTaskRows); ++i) body(i);
    });
  };
  for_all([&](std::uint32_t i) { splitter.load(i); });
  std::uint32_t level = 0;
  for (; level < tree.levels && (1u << level) < kSubtreesPerWorker * pool.size(); ++level)
    pool.parallel_for(std::size_t{1} << level,
                      [&](std::size_t at, unsigned) { splitter.split(level, at); });
  pool.parallel_for(std::size_t{1} << level,
                    [&](std::size_t at, unsigned) { splitter.split_below(level, at); });
  for_all([&](std::uint32_t i) { tree.rows[i] = items[i].row; });
}

/// Orders rows and sets ids and splits.
void split_all(WorkerPool& pool, MemoryBudget& budget, const Dataset& data,
               std::uint32_t leaf_tiles, KdTree& tree) {
  tree.dims = data.dims;
  tree.scalar = data.scalar;
  tree.rows = large_buffer<std::uint32_t>(budget, data.rows);
  tree.ids = large_buffer<std::int64_t>(budget, data.rows);
  tree.points = list_rows(pool, budget, data, tree.rows);
  while (tree.tile_count() >> tree.levels > leaf_tiles) ++tree.levels;
  tree.splits = Buffer<KdTree::Split>(budget, tree.leaves());
  if (data.dims == 2)
    split_rows<2>(pool, budget, data, tree);
  else if (data.dims == kMovedColumns)
    split_rows<kMovedColumns>(pool, budget, data, tree);
  else
    split_rows<1>(pool, budget, data, tree);
  set_ids(pool, data, tree);
}

/// The tiles of a leaf, and its box.
template <class T>
void fill_leaf(const Dataset& data, std::uint32_t number, KdTree& tree) {
  const Window leaf = tree.leaf(number);
  const std::uint32_t dims = data.dims;
  double* const low = tree.boxes.data() + std::size_t{2} * dims * (tree.leaves() + number);
  double* const high = low + dims;
  std::fill_n(low, dims, std::numeric_limits<double>::infinity());
  std::fill_n(high, dims, -std::numeric_limits<double>::infinity());
  const std::uint32_t end = (leaf.end + kTilePoints - 1) / kTilePoints * kTilePoints;
  for (std::uint32_t position = leaf.begin; position < end; ++position) {
    T* const place = tile_place(reinterpret_cast<T*>(tree.tiles.data()), position, dims);
    const T* const values = position < leaf.end ? point<T>(data, tree.rows[position]) : nullptr;
    for (std::uint32_t d = 0; d < dims; ++d) {
      const T x = values != nullptr ? values[d] : std::numeric_limits<T>::quiet_NaN();
      place[std::size_t{d} * kTilePoints] = x;
      if (values == nullptr) continue;
      low[d] = std::min(low[d], static_cast<double>(x));
      high[d] = std::max(high[d], static_cast<double>(x));
    }
  }
}

void join_boxes(KdTree& tree) {
  const std::uint32_t dims = tree.dims;
  for (std::uint32_t node = tree.leaves() - 1; node >= 1; --node) {
    double* const low = tree.boxes.data() + std::size_t{2} * dims * node;
    for (std::uint32_t d = 0; d < dims; ++d) {
      low[d] = std::min(tree.low(2 * node)[d], tree.low(2 * node + 1)[d]);
      low[dims + d] = std::max(tree.high(2 * node)[d], tree.high(2 * node + 1)[d]);
    }
  }
}

/// Calls fill(number) for each leaf, on all workers.
template <class Fill>
void for_leaves(WorkerPool& pool, const KdTree& tree, const Fill& fill) {
  constexpr std::uint32_t kTaskLeaves = 64;
  pool.parallel_for((tree.leaves() + kTaskLeaves - 1) / kTaskLeaves,
                    [&](std::size_t task, unsigned) {
                      const auto first = static_cast<std::uint32_t>(task) * kTaskLeaves;
                      const std::uint32_t end = std::min(tree.leaves(), first + kTaskLeaves);
                      for (std::uint32_t leaf = first; leaf < end; ++leaf) fill(leaf);
                    });
}

void fill_leaves(WorkerPool& pool, MemoryBudget& budget, const Dataset& data, KdTree& tree) {
  tree.tiles = large_buffer<std::byte>(
      budget, std::size_t{tree.tile_count()} * kTilePoints * point_bytes(data));
  tree.boxes = Buffer<double>(budget, std::size_t{4} * data.dims * tree.leaves());
  for_leaves(pool, tree, [&](std::uint32_t leaf) {
    data.scalar == ScalarType::kFloat32 ? fill_leaf<float>(data, leaf, tree)
                                        : fill_leaf<double>(data, leaf, tree);
  });
  join_boxes(tree);
}

std::uint64_t leaf_of(const KdTree& tree, const Dataset& data, std::uint64_t row) {
  std::uint64_t node = 1;
  while (node < tree.leaves()) {
    const KdTree::Split& split = tree.splits[node];
    node = 2 * node + (coordinate(data, row, split.column) >= split.value ? 1 : 0);
  }
  return node;
}

}  // namespace

KdTree build_kd_tree(WorkerPool& pool, MemoryBudget& budget, const Dataset& data,
                     std::uint32_t leaf_tiles) {
  KdTree tree;
  split_all(pool, budget, data, leaf_tiles, tree);
  fill_leaves(pool, budget, data, tree);
  return tree;
}

Buffer<std::int64_t> least_ids(WorkerPool& pool, MemoryBudget& budget, const KdTree& tree) {
  Buffer<std::int64_t> least(budget, std::uint64_t{2} * tree.leaves());
  for_leaves(pool, tree, [&](std::uint32_t number) {
    const Window leaf = tree.leaf(number);
    std::int64_t id = std::numeric_limits<std::int64_t>::max();
    for (std::uint32_t position = leaf.begin; position < leaf.end; ++position)
      id = std::min(id, tree.ids[position]);
    least[tree.leaves() + number] = id;
  });
  for (std::uint32_t node = tree.leaves() - 1; node >= 1; --node)
    least[node] = std::min(least[2 * node], least[2 * node + 1]);
  return least;
}

RowOrder order_by_splits(WorkerPool& pool, MemoryBudget& budget, const Dataset& data) {
  KdTree tree;
  split_all(pool, budget, data, kLeafTiles, tree);
  return tree;
}

RowOrder order_by_leaves(WorkerPool& pool, MemoryBudget& budget, const Dataset& data,
                         const KdTree& tree, std::uint64_t block) {
  constexpr std::uint64_t kNowhere = ~std::uint64_t{0};
  constexpr int kLeafBits = 32;
  Buffer<SortItem> items = large_buffer<SortItem>(budget, data.rows);
  std::atomic<std::uint32_t> points{0};
  for_row_blocks(pool, data, [&](std::uint64_t first, std::uint64_t end) {
    std::uint32_t finite = 0;
    for (std::uint64_t row = first; row < end; ++row) {
      const bool is_finite = is_finite_row(data, row);
      finite += is_finite ? 1 : 0;
      const std::uint64_t place = block > 0 ? row / block << kLeafBits : 0;
      items[row] = {row, is_finite ? place | leaf_of(tree, data, row) : kNowhere};
    }
    points += finite;
  });
  parallel_sort(pool, budget, items);
  RowOrder order;
  order.points = points;
  order.rows = large_buffer<std::uint32_t>(budget, data.rows);
  order.ids = large_buffer<std::int64_t>(budget, data.rows);
  for (std::uint64_t i = 0; i < data.rows; ++i)
    order.rows[i] = static_cast<std::uint32_t>(items[i].lo);
  set_ids(pool, data, order);
  return order;
}

}  // namespace gpujoin::cpu
