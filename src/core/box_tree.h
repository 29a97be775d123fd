// A tree over points in the order of a space-filling curve, and the search of it for a point's
// nearest neighbours. Its leaves are runs of consecutive points, its nodes boxes around them
// [KD-Tree]. It adapts to the data: dense places have many small leaves, empty ones none. For host
// and device: no allocation, no state.
#pragma once

#include <cstdint>

#include "core/distance.h"
#include "core/portability.h"

namespace gpujoin {

inline constexpr std::uint32_t kMostTreeLevels = 30;

/// Points are named by position. Node 1 is the root, 2 n and 2 n + 1 are the children of n, the
/// leaves are the last 2^levels nodes. Columns from `dims` of the data on are zeros, which add
/// nothing to any distance.
struct BoxTree {
  std::uint32_t points;
  std::uint32_t levels;       ///< of inner nodes, at most kMostTreeLevels
  std::uint32_t stride;       ///< columns, padded
  const double* coordinates;  ///< [points][stride]
  const float* boxes;         ///< [2^(levels + 1)][2][stride]: lows, then highs; rounded outwards

  GPUJOIN_HD std::uint32_t leaves() const { return 1u << levels; }
  /// The first position of a leaf, of leaves counted from 0; of leaves(), the end.
  GPUJOIN_HD std::uint32_t begin(std::uint32_t leaf) const {
    return static_cast<std::uint32_t>((std::uint64_t{points} * leaf) >> levels);
  }
  GPUJOIN_HD const double* point(std::uint32_t position) const {
    return coordinates + std::uint64_t{position} * stride;
  }
  GPUJOIN_HD const float* low(std::uint32_t node) const {
    return boxes + std::uint64_t{node} * 2 * stride;
  }
};

/// The levels that leave no leaf with more than so many points.
GPUJOIN_HD inline std::uint32_t tree_levels(std::uint32_t points, std::uint32_t leaf_points) {
  std::uint32_t levels = 0;
  while (levels < kMostTreeLevels && (std::uint64_t{leaf_points} << levels) < points) ++levels;
  return levels;
}

/// The raw distance of a point and the nearest place of a box, summed as the definition sums it: no
/// point of the box has a smaller one (core/nearest.h). An empty box, whose low corner is infinite,
/// is infinitely far away. D: the columns, where they are known; 0: `stride`.
template <Metric M, std::uint32_t D>
GPUJOIN_HD inline double raw_distance_of_node(const double* point, const float* low,
                                              std::uint32_t stride) {
  const std::uint32_t columns = D > 0 ? D : stride;
  double raw = 0;
  for (std::uint32_t d = 0; d < columns; ++d) {
    const double x = point[d], a = static_cast<double>(low[d]),
                 b = static_cast<double>(low[columns + d]);
    raw = add_coordinate<M>(raw, x, x < a ? a : x > b ? b : x);
  }
  return raw;
}

template <Metric M, std::uint32_t D>
GPUJOIN_HD inline double raw_distance_of_points(const double* a, const double* b,
                                                std::uint32_t stride) {
  const std::uint32_t columns = D > 0 ? D : stride;
  double raw = 0;
  for (std::uint32_t d = 0; d < columns; ++d) raw = add_coordinate<M>(raw, a[d], b[d]);
  return raw;
}

/// Branch and bound: the nearer child first, and no node that lies beyond taker.bound(), which
/// shrinks. A taker is given every point of a leaf that is looked at: take(position, raw); and is
/// asked, before each leaf, whether to go on: goes_on(points of the leaf).
template <Metric M, std::uint32_t D, class Taker>
GPUJOIN_HD inline void search_box_tree(const BoxTree& tree, const double* query, Taker& taker) {
  struct Visit {
    double raw;
    std::uint32_t node;
  };
  Visit visits[kMostTreeLevels + 1];
  std::uint32_t waiting = 0;
  Visit visit{0, 1};
  const std::uint32_t leaves = tree.leaves(), stride = D > 0 ? D : tree.stride;
  for (;;) {
    while (visit.node < leaves) {
      const std::uint32_t child = 2 * visit.node;
      const float* const box = tree.low(child);
      const Visit a{raw_distance_of_node<M, D>(query, box, stride), child};
      const Visit b{raw_distance_of_node<M, D>(query, box + 2 * stride, stride), child + 1};
      const bool swapped = b.raw < a.raw;
      const double bound = taker.bound();
      const Visit near = swapped ? b : a, far = swapped ? a : b;
      if (far.raw <= bound) visits[waiting++] = far;
      visit = near;
      if (!(near.raw <= bound)) break;
    }
    if (visit.node >= leaves && visit.raw <= taker.bound()) {
      const std::uint32_t begin = tree.begin(visit.node - leaves);
      const std::uint32_t end = tree.begin(visit.node - leaves + 1);
      if (!taker.goes_on(end - begin)) return;
      for (std::uint32_t p = begin; p < end; ++p)
        taker.take(p, raw_distance_of_points<M, D>(query, tree.point(p), stride));
    }
    do {
      if (waiting == 0) return;
      visit = visits[--waiting];
    } while (!(visit.raw <= taker.bound()));
  }
}

}  // namespace gpujoin
