// A place on a space-filling curve for points of any range: what lies near each other on the curve
// lies near each other in space. For host and device: no allocation, no state.
#pragma once

#include <cfloat>
#include <cstdint>

#include "core/cell_order.h"

namespace gpujoin {

inline constexpr std::uint32_t kMostCurveColumns = 12;

/// Cubes of one side length over the ordinary values of some columns; points beyond are put at the
/// edges. columns * bits is at most 126.
struct CurveFrame {
  std::uint32_t columns;
  std::uint32_t bits;  ///< of a cell's number in each column, at most 31
  double low[kMostCurveColumns];
  double scale;  ///< cells of half a unit's length
};

/// Ascending by `high`, then by `low`.
struct CurveKey {
  std::uint64_t high;
  std::uint64_t low;
};

/// The key of rows that are not finite: after all others.
inline constexpr CurveKey kNoCurveKey{~std::uint64_t{0}, ~std::uint64_t{0}};

GPUJOIN_HD inline std::uint32_t curve_bits(std::uint32_t columns) {
  return columns <= 4 ? 31 : 126 / columns;
}

/// A frame over [low[c], high[c]], finite, of the first columns. `dims` is at least 1.
GPUJOIN_HD inline CurveFrame make_curve_frame(const double* low, const double* high,
                                              std::uint32_t dims) {
  CurveFrame frame{};
  frame.columns = dims < kMostCurveColumns ? dims : kMostCurveColumns;
  frame.bits = curve_bits(frame.columns);
  double half = 0;
  for (std::uint32_t c = 0; c < frame.columns; ++c) {
    frame.low[c] = low[c];
    const double extent = high[c] / 2 - low[c] / 2;
    if (extent > half) half = extent;
  }
  const double cells = static_cast<double>((1u << frame.bits) - 1);
  const double scale = half > 0 ? cells / half : 0;
  frame.scale = scale <= DBL_MAX ? scale : DBL_MAX;
  return frame;
}

GPUJOIN_HD inline std::uint32_t curve_cell(const CurveFrame& frame, std::uint32_t column,
                                           double x) {
  const double top = static_cast<double>((1u << frame.bits) - 1);
  const double at = (x / 2 - frame.low[column] / 2) * frame.scale;
  return static_cast<std::uint32_t>(at > 0 ? (at < top ? at : top) : 0);
}

/// The place of a cell on the Hilbert curve, of frame.columns numbers, which are changed.
GPUJOIN_HD inline CurveKey curve_key(const CurveFrame& frame, std::uint32_t* x) {
  transpose_hilbert(x, frame.columns, frame.bits);
  CurveKey key{0, 0};
  for (std::uint32_t bit = frame.bits; bit-- > 0;)
    for (std::uint32_t d = 0; d < frame.columns; ++d) {
      key.high = key.high << 1 | key.low >> 63;
      key.low = key.low << 1 | (x[d] >> bit & 1);
    }
  return key;
}

}  // namespace gpujoin
