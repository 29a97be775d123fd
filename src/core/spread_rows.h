// Rows in an order in which every stretch is spread over all of them. For host and device.
#pragma once

#include <cstdint>

#include "core/portability.h"

namespace gpujoin {

/// Position p is row p * step modulo `rows`; `step` and `rows` have no common divisor, so each row
/// comes once.
struct SpreadRows {
  std::uint64_t rows;  ///< below 2^32, at least 1
  std::uint64_t step;  ///< likewise

  GPUJOIN_HD std::uint32_t row(std::uint32_t position) const {
    return static_cast<std::uint32_t>(step == 1 ? position : position * step % rows);
  }
};

/// Steps near the golden section leave no large gaps between the rows of a stretch.
inline SpreadRows spread_rows_of(std::uint64_t rows) {
  const auto divisor = [](std::uint64_t a, std::uint64_t b) {
    while (b != 0) {
      const std::uint64_t rest = a % b;
      a = b;
      b = rest;
    }
    return a;
  };
  std::uint64_t step = static_cast<std::uint64_t>(static_cast<double>(rows) * 0.6180339887498949);
  while (step > 1 && divisor(step, rows) != 1) --step;
  return {rows, step > 1 ? step : 1};
}

}  // namespace gpujoin
