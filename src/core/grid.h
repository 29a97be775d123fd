// The epsilon grid [GPU-SJ, section 3.2]: which cell a point lies in, how cells are numbered, and
// why two points within eps are always in the same or in adjacent cells, whatever the rounding. No
// points are stored here.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>

#include "core/portability.h"

namespace gpujoin {

inline constexpr std::uint32_t kMaxGridDimensions = 8;

enum class CellOrder : std::int32_t { kAuto, kLinear, kZOrder, kHilbert };

/// A grid over `dims` columns of the data; dims = 0 is one cell that holds everything. Coordinates
/// are below 2^bits, as few bits as hold them, and a cell key fits in dims * bits <= 62 bits,
/// however small eps is against the extent of the data: cells then become wider than eps, which
/// costs candidates, never pairs.
struct GridGeometry {
  std::uint32_t dims;
  std::uint32_t bits;
  std::uint32_t column[kMaxGridDimensions];
  double origin[kMaxGridDimensions];
  double width[kMaxGridDimensions];
  std::uint32_t cells[kMaxGridDimensions];
  bool alone[kMaxGridDimensions];  ///< only equal values are near each other: those of one cell
};

/// An interval of a column's values, such as the one that a grid is laid over.
struct Extent {
  double low;
  double high;

  GPUJOIN_HD bool holds(double x) const { return x >= low && x <= high; }
};

inline constexpr Extent kNoExtent{HUGE_VAL, -HUGE_VAL};

/// Widens an extent until it holds another one.
inline void include(Extent& extent, const Extent& other) {
  extent.low = std::min(extent.low, other.low);
  extent.high = std::max(extent.high, other.high);
}

/// The most bits that a coordinate may have.
GPUJOIN_HD inline std::uint32_t most_grid_bits(std::uint32_t dims) {
  const std::uint32_t bits = dims == 0 ? 0 : 62 / dims;
  return bits < 30 ? bits : 30;
}

/// The cell coordinate of x along grid dimension d: floor((x - origin) / width), clamped to the
/// grid.
///
/// Adjacency. If fl(|x - y|) <= reach, then the coordinates of x and y differ by at most 1:
/// the true difference is at most reach * (1 + 2^-52), and width >= reach * (1 + 2^-20). The
/// subtraction and the division each err by a factor within 1 +- 2^-53, so a quotient below 2^30
/// errs by less than 2^-21.9, and the quotients of x and y differ by less than (1 + 2^-52) / (1 +
/// 2^-20) + 2^-20.9 < 1. (Subnormal differences are exact, and width >= DBL_MIN keeps its own
/// margin exact.) Two quotients less than 1 apart have floors at most 1 apart. Clamping is monotone
/// and never moves two values further apart, be it to the grid or, where x - origin overflows, to
/// DBL_MAX before the division: clamped any later, such an x would jump over the cells between
/// DBL_MAX and the grid's end. Where width itself is capped to DBL_MAX, no quotient exceeds 1. So
/// the lemma holds for every x, in the extent that the grid was laid over or not: values beyond it
/// share the cells at its ends, and cost candidates there if they are many.
GPUJOIN_HD inline std::uint32_t cell_coordinate(const GridGeometry& grid, std::uint32_t d,
                                                double x) {
  double difference = x - grid.origin[d];
  if (difference > DBL_MAX) difference = DBL_MAX;
  const double quotient = difference / grid.width[d];
  const double last = static_cast<double>(grid.cells[d] - 1);
  if (!(quotient > 0)) return 0;
  return static_cast<std::uint32_t>(quotient < last ? quotient : last);
}

/// Lays a grid over `dims` columns, whose extents and reaches are given in the same order: where
/// most values lie, for the grid takes in all, and how far two that are near each other differ,
/// which is Threshold::reach of coordinates. A reach of 0 `equals`: whole numbers are near
/// themselves alone, and have a cell each where there are enough.
inline GridGeometry make_grid(std::uint32_t dims, const std::uint32_t* columns,
                              const Extent* extents, const double* reaches, const bool* equals) {
  constexpr double kMargin = 1.0 + 0x1p-20;
  GridGeometry grid{};
  grid.dims = dims;
  const std::uint32_t most_bits = most_grid_bits(dims);
  const std::uint32_t most_cells = (1u << most_bits) - (most_bits < 30 ? 0u : 1u);
  for (std::uint32_t d = 0; d < dims; ++d) {
    double length = extents[d].high - extents[d].low;
    if (!(length <= DBL_MAX)) length = DBL_MAX;
    grid.alone[d] = equals[d];
    double width = equals[d] ? 1 : reaches[d] * kMargin;
    if (width < DBL_MIN) width = DBL_MIN;
    const double widened = (equals[d] ? length + 1 : length) / most_cells * kMargin;
    if (width < widened) width = widened;
    grid.column[d] = columns[d];
    grid.origin[d] = extents[d].low;
    grid.width[d] = width < DBL_MAX ? width : DBL_MAX;
    grid.cells[d] = most_cells;  // cell_coordinate() clamps to it
    grid.cells[d] = cell_coordinate(grid, d, extents[d].high) + 1;
    while (grid.bits < most_bits && grid.cells[d] > 1u << grid.bits) ++grid.bits;
  }
  return grid;
}

/// The same of columns with one reach.
inline GridGeometry make_grid(std::uint32_t dims, const std::uint32_t* columns,
                              const Extent* extents, double reach) {
  double reaches[kMaxGridDimensions];
  bool equals[kMaxGridDimensions] = {};
  std::fill_n(reaches, kMaxGridDimensions, reach);
  return make_grid(dims, columns, extents, reaches, equals);
}

}  // namespace gpujoin
