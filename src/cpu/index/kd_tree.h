// The index of nearest-neighbour joins: a balanced k-d tree of one dataset whose leaves are a few
// tiles of points [KD-Tree]. It adapts to the data: dense places have many small leaves, empty ones
// none. Building only; who looks for whom is nearest_join's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cpu/scan/scan.h"
#include "engine/request/buffer.h"
#include "engine/request/dataset.h"
#include "engine/worker_pool.h"

namespace gpujoin::cpu {

/// Tiles of a leaf at most, and one more where they do not divide evenly.
inline constexpr std::uint32_t kLeafTiles = 4;
inline constexpr std::uint32_t kMostLeafPoints = (kLeafTiles + 1) * kTilePoints;

/// The tiles of a leaf at most that searches for several points at a time take the least time with.
inline std::uint32_t lane_leaf_tiles(std::uint32_t dims) { return dims <= 3 ? 1 : 3; }

/// The rows of a dataset by position: finite ones first, then those with a NaN or infinite
/// coordinate, which are nobody's neighbours.
struct RowOrder {
  std::uint32_t points = 0;    ///< finite ones
  Buffer<std::uint32_t> rows;  ///< [rows of the dataset], position -> row
  Buffer<std::int64_t> ids;    ///< likewise, position -> id
};

/// Points are in the order of leaves. Node 1 is the root, 2 n and 2 n + 1 are the children of n,
/// the leaves are the last 2^levels nodes.
struct KdTree : RowOrder {
  /// Points of the first child have no larger coordinate, those of the second no smaller one.
  struct Split {
    double value;
    std::uint32_t column;
  };

  std::uint32_t dims = 0;
  ScalarType scalar = ScalarType::kFloat64;
  std::uint32_t levels = 0;  ///< of inner nodes
  Buffer<Split> splits;      ///< [2^levels] by inner node
  Buffer<std::byte> tiles;   ///< see cpu/scan/scan.h, columns in their order
  Buffer<double> boxes;      ///< [2^(levels + 1)][2][dims] low and high corners, by node

  std::uint32_t leaves() const { return 1u << levels; }
  std::uint32_t tile_count() const { return (points + kTilePoints - 1) / kTilePoints; }
  /// The first tile of node number `at` of a level, counted from 0: all nodes of a level have
  /// equally many tiles, up to one.
  std::uint32_t first_tile(std::uint32_t level, std::uint64_t at) const {
    return static_cast<std::uint32_t>((tile_count() * at) >> level);
  }
  /// The positions of a leaf, of leaves counted from 0.
  Window leaf(std::uint32_t number) const {
    return {std::min(points, first_tile(levels, number) * kTilePoints),
            std::min(points, first_tile(levels, number + 1) * kTilePoints)};
  }
  const double* low(std::uint32_t node) const {
    return boxes.data() + std::size_t{2} * dims * node;
  }
  const double* high(std::uint32_t node) const { return low(node) + dims; }
};

/// Leaves have `leaf_tiles` tiles at most, of kLeafTiles, and one more where they do not divide
/// evenly. In O(n log n) time and O(n) memory. Throws MemoryLimitExceeded, std::bad_alloc, Stopped.
KdTree build_kd_tree(WorkerPool& pool, MemoryBudget& budget, const Dataset& data,
                     std::uint32_t leaf_tiles = kLeafTiles);

/// [2^(levels + 1)] by node: the least id of its points; of an empty one the largest number there
/// is. As build_kd_tree().
Buffer<std::int64_t> least_ids(WorkerPool& pool, MemoryBudget& budget, const KdTree& tree);

/// The order that the points of a tree would have. As build_kd_tree().
RowOrder order_by_splits(WorkerPool& pool, MemoryBudget& budget, const Dataset& data);

/// Other points of the same dimensions in the order of the leaves that they fall into, which takes
/// a fraction of the time. With a `block`, so many consecutive rows come before the next ones. As
/// build_kd_tree().
RowOrder order_by_leaves(WorkerPool& pool, MemoryBudget& budget, const Dataset& data,
                         const KdTree& tree, std::uint64_t block = 0);

}  // namespace gpujoin::cpu
