// Rectangles of the matrix of all pairs of rows, one after the other: what a device compares in one
// launch. For host and device: no allocation, no state.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/portability.h"

namespace gpujoin {

/// Left rows against right ones, the columns.
struct PairRectangle {
  std::uint32_t first_row, end_row;
  std::uint32_t first_column, end_column;

  GPUJOIN_HD std::uint64_t size() const {
    return std::uint64_t{end_row - first_row} * (end_column - first_column);
  }
};

/// Where the next rectangle begins.
struct PairPlace {
  std::uint32_t row, column;
};

/// The rows of a rectangle: so many at least, where there are as many, since each is a thread's.
struct RectangleRows {
  std::uint64_t fewest, most;
};

/// The next of a matrix of so many rows and columns, both more than 0: with all columns, as many
/// rows as `most_pairs` allows; or the fewest rows with some of the columns, at least one. Until
/// all columns of these rows are done the rows stay the same. The rectangle has no more than
/// `most_pairs` where these are bounds.fewest or more, or all of the matrix.
inline PairRectangle next_rectangle(std::uint32_t rows, std::uint32_t columns, PairPlace from,
                                    std::uint64_t most_pairs, const RectangleRows& bounds) {
  const std::uint64_t left = rows - from.row, width = columns - from.column;
  const bool whole = from.column == 0 && most_pairs / bounds.fewest >= width;
  const std::uint64_t high =
      std::min(left, whole ? std::min(bounds.most, most_pairs / width) : bounds.fewest);
  const std::uint64_t wide =
      whole ? width : std::clamp<std::uint64_t>(most_pairs / bounds.fewest, 1, width);
  return {from.row, static_cast<std::uint32_t>(from.row + high), from.column,
          static_cast<std::uint32_t>(from.column + wide)};
}

/// Where the one after it begins; at row `rows` where there is none.
inline PairPlace after(const PairRectangle& done, std::uint32_t columns) {
  if (done.end_column < columns) return {done.first_row, done.end_column};
  return {done.end_row, 0};
}

}  // namespace gpujoin
