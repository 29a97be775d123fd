// Cells to partition points by, so that an equality finds neighbours: the key of a point's cell,
// and the keys of all cells in which points within a radius of it may lie, its halo. Both depend on
// nothing but their arguments, so that servers that know nothing of each other agree on them.
//
// A join of points in their own cells with points in all cells of their halos, on equal keys, meets
// each pair within the radius exactly once: a left point has one key, the keys of a halo differ
// from each other, and one of them is the left point's. Two cells far apart may share a key: their
// points only meet in vain.
#pragma once

#include "core/threshold.h"

namespace gpujoin {

inline constexpr std::uint32_t kMaxPartitionDimensions = 3;

/// A halo of more cells is refused. It also keeps the sides of a halo far below 2^21 cells, so that
/// its keys differ.
inline constexpr double kMaxHaloCells = 0x1p20;

/// The coordinate of the cell that holds x: floor(x / width), at most 2^53 from 0, with NaN at the
/// low end. `width` is finite and above 0. Division by a positive number, rounded, is monotone, and
/// so are floor and the bounds: x <= y implies that x's coordinate is at most y's. That is all that
/// halos need; a quotient that was rounded across an edge is on the same side for everyone.
GPUJOIN_HD inline std::int64_t partition_coordinate(double x, double width) {
  constexpr double kMost = 0x1p53;
  const double quotient = floor(x / width);
  if (!(quotient > -kMost)) return -static_cast<std::int64_t>(kMost);
  return static_cast<std::int64_t>(quotient < kMost ? quotient : kMost);
}

/// The key of a cell: in two dimensions x * 2^32 + y, in three (x * 2^21 + y) * 2^21 + z, modulo
/// 2^64. Keys of one plane of cells lie together, the planes in order of x. Cells that differ by
/// less than 2^21 in each coordinate have different keys: the lowest coordinate in which they
/// differ shows in the key's lowest bits that differ.
GPUJOIN_HD inline std::int64_t partition_key(const std::int64_t* cell, std::uint32_t dims) {
  const std::uint32_t bits = dims < 3 ? 32 : 21;
  std::uint64_t key = 0;
  for (std::uint32_t d = 0; d < dims; ++d)
    key = (key << bits) + static_cast<std::uint64_t>(cell[d]);
  return static_cast<std::int64_t>(key);
}

/// The key of the cell of point[0..dims), dims <= kMaxPartitionDimensions.
GPUJOIN_HD inline std::int64_t partition_key(const double* point, std::uint32_t dims,
                                             double width) {
  std::int64_t cell[kMaxPartitionDimensions];
  for (std::uint32_t d = 0; d < dims; ++d) cell[d] = partition_coordinate(point[d], width);
  return partition_key(cell, dims);
}

/// The cells from `first` to `last` in each dimension, both included.
struct PartitionHalo {
  std::uint32_t dims;
  std::int64_t first[kMaxPartitionDimensions];
  std::int64_t last[kMaxPartitionDimensions];
};

/// How far two coordinates may differ where the L2, L1 or maximum distance of their points is at
/// most a finite eps >= 0: fl(|x - y|) <= reach. In L2 squares may underflow, so that it exceeds
/// eps, or overflow, so that it is less.
inline double partition_reach(double eps) {
  const double reach = make_threshold(Metric::kL2, eps).reach;
  return reach > eps ? reach : eps;
}

/// The cells in which points within `reach` of a point may lie, its own among them. No pair is
/// lost: let fl(|x - y|) <= reach for finite x and y. Then x lies between y - wide and y + wide
/// (wide_reach()), and as x is a double also between these bounds when they are rounded, which may
/// be infinite. partition_coordinate() is monotone, so x's cell lies between theirs. A point that
/// is not finite has no neighbours, and its own cell for a halo.
GPUJOIN_HD inline PartitionHalo partition_halo(const double* point, std::uint32_t dims,
                                               double width, double reach) {
  double wide = wide_reach(reach);
  for (std::uint32_t d = 0; d < dims; ++d)
    if (!(fabs(point[d]) <= DBL_MAX)) wide = 0;
  PartitionHalo halo{};
  halo.dims = dims;
  for (std::uint32_t d = 0; d < dims; ++d) {
    halo.first[d] = partition_coordinate(point[d] - wide, width);
    halo.last[d] = partition_coordinate(point[d] + wide, width);
  }
  return halo;
}

/// How many cells it has; rounded where they are too many.
GPUJOIN_HD inline double halo_cells(const PartitionHalo& halo) {
  double cells = 1;
  for (std::uint32_t d = 0; d < halo.dims; ++d)
    cells *= static_cast<double>(halo.last[d] - halo.first[d]) + 1;
  return cells;
}

/// The key of a cell of a halo of at most kMaxHaloCells: number 0 .. halo_cells() - 1.
GPUJOIN_HD inline std::int64_t halo_key(const PartitionHalo& halo, std::uint64_t number) {
  std::int64_t cell[kMaxPartitionDimensions];
  for (std::uint32_t d = halo.dims; d-- > 0;) {
    const auto side = static_cast<std::uint64_t>(halo.last[d] - halo.first[d]) + 1;
    cell[d] = halo.first[d] + static_cast<std::int64_t>(number % side);
    number /= side;
  }
  return partition_key(cell, halo.dims);
}

}  // namespace gpujoin
