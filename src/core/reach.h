// Which positions of one cell of a sorted index hold a point's candidates (SORTIDU
// [GPU-Join, section 4.3]). Kernels search them; the host, whose points come in order, slides its
// windows instead (src/cpu/walk/point_windows.cpp).
#pragma once

#include <cstdint>

#include "core/portability.h"
#include "core/sort_code.h"
#include "core/threshold.h"

namespace gpujoin {

/// A range of positions, begin <= end.
struct PositionRange {
  std::uint32_t begin;
  std::uint32_t end;
};

/// The first of values[begin .. end) that is not below `value`, else end. `values` ascend.
GPUJOIN_HD inline std::uint32_t first_not_below(const std::uint64_t* values, std::uint32_t begin,
                                                std::uint32_t end, std::uint64_t value) {
  while (begin < end) {
    const std::uint32_t middle = begin + (end - begin) / 2;
    if (values[middle] < value)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

/// The points of `cell` whose sort value may be within `reach` of x, among codes[begin .. end),
/// which ascend.
///
/// None is missed: if fl(|x - y|) <= reach, then y >= x - reach * (1 + 2^-52) >= x - wide, and
/// because rounding is monotone and y is a double, y >= fl(x - wide); likewise above. sort_step()
/// is monotone too. A few points more than needed share a step with the ends.
GPUJOIN_HD inline PositionRange points_in_reach(const SortLayout& layout,
                                                const std::uint64_t* codes, std::uint32_t begin,
                                                std::uint32_t end, const std::uint32_t* cell,
                                                double x, double reach) {
  const std::uint64_t key = cell_key(layout.grid, layout.cell_order, cell) << layout.value_bits;
  const std::uint64_t last = (std::uint64_t{1} << layout.value_bits) - 1;
  std::uint64_t low = 0, high = last;
  if (layout.sort_column != kNoColumn) {
    const double wide = wide_reach(reach);
    low = sort_step(layout, x - wide);
    high = sort_step(layout, x + wide);
  }
  const std::uint32_t first = first_not_below(codes, begin, end, key | low);
  return {first, first_not_below(codes, first, end, (key | high) + 1)};
}

}  // namespace gpujoin
