// The index of nearest-neighbour joins: a balanced k-d tree of one dataset whose leaves are a few
// tiles of points [KD-Tree]. It adapts to the data: dense places have many small leaves, empty ones
// none. Building only; who looks for whom is nearest_join's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/scan/scan.h"
#include "engine/request/buffer.h"
#include "engine/request/dataset.h"
#include "engine/worker_pool.h"

namespace gpujoin::cpu {

/// Points of a leaf at most: four tiles, and one where they do not divide evenly.
inline constexpr std::uint32_t kMostLeafPoints = 5 * kTilePoints;

/// Points are named by position: finite ones first, leaf by leaf, then the points with a NaN or
/// infinite coordinate, which are nobody's neighbours. Node 1 is the root, 2 n and 2 n + 1 are the
/// children of n, the leaves are the last 2^levels nodes.
struct KdTree {
  std::uint32_t dims = 0;
  ScalarType scalar = ScalarType::kFloat64;
  std::uint32_t points = 0;    ///< finite ones
  std::uint32_t levels = 0;    ///< of inner nodes
  Buffer<std::uint32_t> rows;  ///< [rows of the dataset], position -> row
  Buffer<std::int64_t> ids;    ///< likewise, position -> id
  Buffer<std::byte> tiles;     ///< see cpu/scan/scan.h, columns in their order
  Buffer<double> boxes;        ///< [2^(levels + 1)][2][dims] low and high corners, by node

  std::uint32_t leaves() const { return 1u << levels; }
  /// The positions of a leaf, of leaves counted from 0.
  Window leaf(std::uint32_t number) const;
  const double* low(std::uint32_t node) const {
    return boxes.data() + std::size_t{2} * dims * node;
  }
  const double* high(std::uint32_t node) const { return low(node) + dims; }
};

/// `order_only`: rows and ids in the order of leaves, without tiles and boxes. In O(n log n) time
/// and O(n) memory. Throws MemoryLimitExceeded, std::bad_alloc, Stopped.
KdTree build_kd_tree(WorkerPool& pool, MemoryBudget& budget, const Dataset& data, bool order_only);

}  // namespace gpujoin::cpu
