// Clusters by density, as in [DBSCAN]: what a row is in them, how that is packed into one
// number, and the cells that make dense places cheap. Rows whose distance is at most eps are
// neighbours, each row is its own; a row with min_points neighbours or more is a core row. For host
// and device.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/distance.h"
#include "core/portability.h"

namespace gpujoin {

enum class ClusterRole : std::uint8_t {
  kNoise,   ///< in no cluster
  kBorder,  ///< no core row, but a neighbour of one, in whose cluster it is
  kCore,
};

/// Which of its core neighbours a border row follows. The order of rows, by id and then by place,
/// decides among several.
enum class BorderRule : std::uint8_t {
  kNearest,  ///< the nearest
  kFirst,    ///< the first in the order of rows, however near it is
};

struct RowCluster {
  ClusterRole role;
  std::uint64_t cluster;  ///< 0 of noise
};

GPUJOIN_HD inline std::uint64_t pack_cluster(const RowCluster& row) {
  return row.cluster << 2 | static_cast<std::uint64_t>(row.role);
}

GPUJOIN_HD inline RowCluster unpack_cluster(std::uint64_t word) {
  return {static_cast<ClusterRole>(word & 3), word >> 2};
}

/// The most dimensions of a grid for clusters: a cell has up to (2 * radius + 1)^dims neighbours,
/// itself included.
inline constexpr std::uint32_t kMaxClusterGrid = 3;

/// Cells that are so small that points of one are neighbours, but for a rounding error or columns
/// that the grid does not have: boxes of points prove it. Points within eps lie in cells whose
/// coordinates differ by `radius` at most, by the lemma of cell_coordinate(): cells at least
/// reach / radius * (1 + 2^-20) wide make quotients that differ by less than
/// radius * (1 + 2^-52) / (1 + 2^-20) + 2^-20.9, which is below radius.
struct ClusterCells {
  double reach;  ///< for make_grid()
  std::uint32_t radius;
};

/// `reach` is Threshold::reach; the metric is none of directions.
inline ClusterCells make_cluster_cells(Metric metric, std::uint32_t grid_dims, double reach) {
  constexpr double kMargin = 1 - 0x1p-18;
  if (grid_dims == 0 || metric == Metric::kLInf) return {reach, 1};
  if (metric == Metric::kL1) return {reach / grid_dims, grid_dims};
  const double share = 1 / std::sqrt(static_cast<double>(grid_dims));
  const auto radius = static_cast<std::uint32_t>(std::ceil(1 / share * kMargin));
  return {std::fmax(share * kMargin * reach, reach / radius), radius};
}

/// Boxes bound raw distances, column by column in their order: rounded differences, their squares
/// and sums are monotone. Adds a column to a lower bound on those of points of two boxes.
template <Metric M>
GPUJOIN_HD inline double add_gap(double raw, double low, double high, double other_low,
                                 double other_high) {
  if (low > other_high) return add_coordinate<M>(raw, low, other_high);
  if (other_low > high) return add_coordinate<M>(raw, other_low, high);
  return raw;
}

/// The same to an upper bound.
template <Metric M>
GPUJOIN_HD inline double add_span(double raw, double low, double high, double other_low,
                                  double other_high) {
  return high - other_low > other_high - low ? add_coordinate<M>(raw, high, other_low)
                                             : add_coordinate<M>(raw, other_high, low);
}

}  // namespace gpujoin
