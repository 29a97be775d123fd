// The sweep of GCMF's SMF (thesis, section 4.3.1): boxes in the order of their low bounds along one
// dimension, and which of them a box looks at.
//
// The paper sorts the bounds of both sides together and ranks them. What a box needs of that are
// two ranks among the low bounds of the other side, which binary searches in those alone find: so
// the indexed side is sorted once, however much of the other one follows.
//
// Each pair is found once. Widened by BoxTest::reach (see widened_low()), the box whose low bound
// is the smaller one overlaps the other, so the larger low bound lies between its own low bound and
// its widened high one. The boxes of one side, the first, look at low bounds of the other from
// their own on; those of the second side at low bounds above their own. Of two low bounds one is
// larger, or both are equal: just one of the two boxes looks at the other.
//
// A self-join needs the first of these walks only. Two boxes with different low bounds meet once in
// it, two with the same one twice, and a box meets itself: takes_pair() says which of these counts.
#pragma once

#include <cstdint>

#include "core/box.h"
#include "core/portability.h"
#include "core/reach.h"

namespace gpujoin {

/// The first of values[begin .. end) that is above `value`, or with `or_equal` not below it; else
/// end. `values` ascend.
template <class T>
GPUJOIN_HD inline std::uint32_t first_above(const T* values, std::uint32_t begin, std::uint32_t end,
                                            double value, bool or_equal) {
  while (begin < end) {
    const std::uint32_t middle = begin + (end - begin) / 2;
    const double x = static_cast<double>(values[middle]);
    if (x < value || (x == value && !or_equal))
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

/// The boxes to look at among `boxes` ones whose low bounds are lows[0 .. boxes), ascending, for a
/// box from `low` to `high`. `first_side`: equal low bounds are for this box to find.
template <class T>
GPUJOIN_HD inline PositionRange boxes_above(const T* lows, std::uint32_t boxes, double low,
                                            double high, double reach, bool first_side) {
  const std::uint32_t begin = first_above(lows, 0, boxes, low, first_side);
  return {begin, first_above(lows, begin, boxes, widened_high(high, reach), false)};
}

/// Of a self-join's walk: whether the pair that `row` finds in `other` counts. `with_itself`: so
/// does a box with itself.
GPUJOIN_HD inline bool takes_pair(double low, double other_low, std::uint32_t row,
                                  std::uint32_t other, bool with_itself) {
  if (row == other) return with_itself;
  return low != other_low || row < other;
}

}  // namespace gpujoin
