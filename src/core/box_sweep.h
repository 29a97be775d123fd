// The sweep of SMF, a filter of [GCMF] [thesis, section 4.3.1]: boxes in the order of their low
// bounds along one dimension, and which of them a box is compared with.
//
// SMF sorts the bounds of both sides together and ranks them. A box needs only two of the ranks,
// both among the low bounds of the other side. Two binary searches in these low bounds find them,
// so the indexed side is sorted once, however much of the other one follows.
//
// Each pair is found once. Widened by BoxTest::reach (see widened_low()), the box whose low bound
// is the smaller one overlaps the other, so the larger low bound lies between its own low bound and
// its widened high one. A box of the first side searches the low bounds of the other side from its
// own on; a box of the second side searches the low bounds above its own. Two low bounds are
// different or equal: in either case just one of the two boxes finds the other.
//
// A self-join needs the walk of the first side only. There two boxes with different low bounds meet
// once, two boxes with the same low bound meet twice, and a box meets itself: takes_pair() decides
// which meeting counts.
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

/// The candidates of a box from `low` to `high` among `boxes` boxes whose low bounds lows[0 ..
/// boxes) ascend. `first_side`: this box finds the boxes with the same low bound.
template <class T>
GPUJOIN_HD inline PositionRange boxes_above(const T* lows, std::uint32_t boxes, double low,
                                            double high, double reach, bool first_side) {
  const std::uint32_t begin = first_above(lows, 0, boxes, low, first_side);
  return {begin, first_above(lows, begin, boxes, widened_high(high, reach), false)};
}

/// Whether the pair of `row` and `other`, which a self-join's walk has found, counts.
/// `with_itself`: self-pairs count too.
GPUJOIN_HD inline bool takes_pair(double low, double other_low, std::uint32_t row,
                                  std::uint32_t other, bool with_itself) {
  if (row == other) return with_itself;
  return low != other_low || row < other;
}

}  // namespace gpujoin
