// The order of points in an index: by cell, then by the value of one more column (SORTIDU
// [GPU-Join, section 4.3]), packed into one integer.
#pragma once

#include <cfloat>
#include <cstdint>

#include "core/cell_order.h"
#include "core/grid.h"
#include "core/portability.h"

namespace gpujoin {

inline constexpr std::int32_t kNoColumn = -1;

/// The code of points with a NaN or infinite coordinate, which match nothing: after every other.
inline constexpr std::uint64_t kNotFinite = ~std::uint64_t{0};

/// How the points of an index are ordered. The upper bits of a code are the cell's key, the lower
/// `value_bits` are the sort value, rounded down to a step.
struct SortLayout {
  GridGeometry grid;
  CellOrder cell_order;
  std::int32_t sort_column;  ///< kNoColumn: points of a cell are unsorted
  double low;                ///< sort value of the first step, and of all below it
  double scale;              ///< steps per unit
  std::uint32_t value_bits;
};

/// `extent` is where most sort values lie. `most_bits` bounds the bits that they get: 52, or less
/// where fewer bits sort faster.
GPUJOIN_HD inline SortLayout make_sort_layout(const GridGeometry& grid, CellOrder cell_order,
                                              std::int32_t sort_column, Extent extent,
                                              std::uint32_t most_bits) {
  SortLayout layout{grid, cell_order, sort_column, 0, 0, 0};
  const std::uint32_t free_bits = 63 - grid.dims * grid.bits;
  layout.value_bits = free_bits < most_bits ? free_bits : most_bits;
  if (sort_column == kNoColumn) return layout;
  const double length = extent.high - extent.low;
  const double steps = static_cast<double>((std::uint64_t{1} << layout.value_bits) - 1);
  layout.low = extent.low;
  layout.scale = length > 0 ? steps / length : 0;
  if (!(layout.scale <= DBL_MAX)) layout.scale = DBL_MAX;
  return layout;
}

/// The step of a sort value: monotone in x, NaN-free, and the same on host and device. What lies
/// outside the extent that the layout was made for takes the first step or the last, which is
/// monotone as well, and being monotone is all that points_in_reach() asks.
GPUJOIN_HD inline std::uint64_t sort_step(const SortLayout& layout, double x) {
  const std::uint64_t last = (std::uint64_t{1} << layout.value_bits) - 1;
  const double above_low = add_rounded(x, -layout.low);
  if (!(above_low > 0)) return 0;
  const double step = multiply_rounded(above_low, layout.scale);
  // NaN: an infinite difference times a scale of 0.
  return step < static_cast<double>(last) ? static_cast<std::uint64_t>(step) : last;
}

/// The code of a cell's points whose sort value is x.
GPUJOIN_HD inline std::uint64_t sort_code(const SortLayout& layout, const std::uint32_t* cell,
                                          double x) {
  const std::uint64_t key = cell_key(layout.grid, layout.cell_order, cell) << layout.value_bits;
  return layout.sort_column == kNoColumn ? key : key | sort_step(layout, x);
}

/// The key of the cell that a point with this code lies in.
GPUJOIN_HD inline std::uint64_t cell_key_of_code(const SortLayout& layout, std::uint64_t code) {
  return code >> layout.value_bits;
}

}  // namespace gpujoin
