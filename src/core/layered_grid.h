// The geometry of the grid of [MLG-join] [thesis, section 4.2]: the boxes of one side in parts,
// cells that have a bit for each part, and which cells a box covers. The table of bits, the order
// of the boxes and the boxes around parts are the engines'.
//
// A part of the thesis holds boxes in the order of their rows. Here the boxes of a part are
// neighbours along a Hilbert curve, so that few parts cover a cell.
#pragma once

#include <cfloat>
#include <cstdint>

#include "core/box.h"
#include "core/cell_order.h"
#include "core/grid.h"
#include "core/portability.h"

namespace gpujoin {

inline constexpr std::uint32_t kMaxLayeredDimensions = 4;  ///< columns of the grid
inline constexpr std::uint32_t kWordBits = 64;
inline constexpr std::uint32_t kMaxParts = kWordBits * kWordBits;
inline constexpr std::uint32_t kLeastPartBoxes = 64;
/// A box that covers more cells is neither looked up nor written cell by cell.
inline constexpr std::uint32_t kMostCellsOfBox = 256;
inline constexpr std::uint32_t kMostLayeredCells = 1 << 20;
inline constexpr std::uint32_t kSizeBits = 2;  ///< of a code: boxes have 3 sizes, see curve_code()
static_assert(kMostLayeredCells / 64 / 64 <= kMostCellsOfBox);

/// How the boxes of one side lie along one of their dimensions. Estimates will do: whatever stands
/// here changes only speed.
struct BoxSpread {
  Extent extent;  ///< of most bounds, finite
  double length;  ///< of a typical box, finite
};

/// Part p is the boxes part_boxes * p .. in the order of curve_code(). The table has one record for
/// each cell, and one more, number `cells`, for the parts that every box is compared with: parts
/// with a box that covers more than kMostCellsOfBox cells. A record is 1 + `words` words: bit w of
/// the first is set where word w of the others is not 0; bit p % 64 of word p / 64 is set where a
/// box of part p covers the cell.
struct LayeredGrid {
  GridGeometry cell;   ///< dims <= kMaxLayeredDimensions; its columns are dimensions of boxes
  GridGeometry curve;  ///< of the boxes' centres, on the same columns
  std::uint32_t cells;
  std::uint32_t parts;
  std::uint32_t part_boxes;
  std::uint32_t words;

  GPUJOIN_HD std::uint64_t record_words() const { return std::uint64_t{1} + words; }
  /// All codes are below 2^code_bits() - 1.
  GPUJOIN_HD std::uint32_t code_bits() const { return curve.dims * curve.bits + kSizeBits; }
  GPUJOIN_HD std::uint64_t table_words() const {
    return (cells + std::uint64_t{1}) * record_words();
  }
};

/// The cells that a box covers: along each dimension of the grid first .. first + count - 1.
struct CellRectangle {
  std::uint32_t first[kMaxLayeredDimensions];
  std::uint32_t count[kMaxLayeredDimensions];
  std::uint32_t cells;  ///< the product of the counts
};

/// The cells of a box of `dims` dimensions, widened by `reach` (BoxTest::reach; 0 for the boxes
/// that the table is made of).
///
/// No pair is missed: widened, one box overlaps the other, so along each dimension the larger of
/// their two lows lies within both. cell_coordinate() is monotone and takes infinities, so this
/// point's cell is among those of both boxes, and with it the cell that these points make up.
template <class T>
GPUJOIN_HD inline CellRectangle cells_of_box(const LayeredGrid& grid, const T* box,
                                             std::uint32_t dims, double reach) {
  CellRectangle rectangle;
  rectangle.cells = 1;
  for (std::uint32_t d = 0; d < grid.cell.dims; ++d) {
    const std::uint32_t column = grid.cell.column[d];
    const double low = widened_low(static_cast<double>(box[column]), reach);
    const double high = widened_high(static_cast<double>(box[dims + column]), reach);
    rectangle.first[d] = cell_coordinate(grid.cell, d, low);
    rectangle.count[d] = cell_coordinate(grid.cell, d, high) - rectangle.first[d] + 1;
    rectangle.cells *= rectangle.count[d];
  }
  return rectangle;
}

/// The number of the i-th cell of a rectangle, i < rectangle.cells; ascending in i.
GPUJOIN_HD inline std::uint32_t cell_of_rectangle(const LayeredGrid& grid,
                                                  const CellRectangle& rectangle, std::uint32_t i) {
  std::uint32_t number = 0, stride = 1;
  for (std::uint32_t d = grid.cell.dims; d-- > 0;) {
    number += stride * (rectangle.first[d] + i % rectangle.count[d]);
    i /= rectangle.count[d];
    stride *= grid.cell.cells[d];
  }
  return number;
}

/// Boxes in the order of their codes, ties by row, make up the parts. First the boxes that are
/// written cell by cell, along the curve by their centres; then larger and larger ones, so that few
/// parts have to be compared with every box.
template <class T>
GPUJOIN_HD inline std::uint64_t curve_code(const LayeredGrid& grid, const T* box,
                                           std::uint32_t dims) {
  std::uint64_t size = 0;
  for (std::uint32_t cells = cells_of_box(grid, box, dims, 0).cells; cells > kMostCellsOfBox;
       cells /= 64)
    ++size;
  std::uint32_t centre[kMaxGridDimensions];
  for (std::uint32_t d = 0; d < grid.curve.dims; ++d) {
    const std::uint32_t column = grid.curve.column[d];
    const double low = static_cast<double>(box[column]);
    const double high = static_cast<double>(box[dims + column]);
    centre[d] = cell_coordinate(grid.curve, d, low / 2 + high / 2);
  }
  return size << (grid.curve.dims * grid.curve.bits) |
         cell_key(grid.curve, CellOrder::kHilbert, centre);
}

namespace layered_grid {

/// Gives `grid` one more dimension.
GPUJOIN_HD inline void add_dimension(GridGeometry& grid, std::uint32_t column, double low,
                                     double length, std::uint32_t cells) {
  const std::uint32_t d = grid.dims++;
  const double width = length / cells;
  grid.column[d] = column;
  grid.origin[d] = low;
  grid.width[d] = width > DBL_MIN ? width : DBL_MIN;
  grid.cells[d] = cells;
}

/// The length of a side of the grid; 0 where it has none.
GPUJOIN_HD inline double side_of(const BoxSpread& spread) {
  const double side = spread.extent.high - spread.extent.low;
  return side > 0 ? (side < DBL_MAX ? side : DBL_MAX) : 0;
}

/// How many cells as wide as a typical box, widened by `reach`, a side has.
GPUJOIN_HD inline std::uint32_t cells_wanted(const BoxSpread& spread, double reach) {
  const double cells = side_of(spread) / (spread.length + reach);  // NaN: 0 / 0
  if (!(cells > 1)) return 1;
  return cells < kMostLayeredCells ? static_cast<std::uint32_t>(cells) : kMostLayeredCells;
}

}  // namespace layered_grid

/// Lays a grid over `boxes` boxes of `dims` dimensions; `reach` is BoxTest::reach. Cells are as
/// wide as a typical box [thesis, section 4.2.2], or wider where there would be more than
/// `most_words` words in the table or many cells for each box, along the longest sides. Parts hold
/// a multiple of `least_part_boxes`.
GPUJOIN_HD inline LayeredGrid make_layered_grid(std::uint64_t boxes, std::uint32_t dims,
                                                const BoxSpread* spreads, double reach,
                                                std::uint64_t most_words,
                                                std::uint32_t least_part_boxes = kLeastPartBoxes) {
  constexpr std::uint64_t kCellsPerBox = 4;
  LayeredGrid grid{};
  const std::uint64_t least_parts =
      boxes == 0 ? 1 : (boxes + least_part_boxes - 1) / least_part_boxes;
  const std::uint64_t together = (least_parts + kMaxParts - 1) / kMaxParts;
  grid.part_boxes = static_cast<std::uint32_t>(together * least_part_boxes);
  grid.parts = static_cast<std::uint32_t>((least_parts + together - 1) / together);
  grid.words = (grid.parts + kWordBits - 1) / kWordBits;

  const std::uint64_t records = most_words / grid.record_words();
  std::uint64_t most_cells = records > 0 ? records - 1 : 0;
  if (most_cells > kCellsPerBox * boxes) most_cells = kCellsPerBox * boxes;
  if (most_cells > kMostLayeredCells) most_cells = kMostLayeredCells;
  if (most_cells < 1) most_cells = 1;

  // The sides that have the most cells.
  std::uint32_t wanted[kMaxBoxDimensions];
  for (std::uint32_t d = 0; d < dims; ++d)
    wanted[d] = layered_grid::cells_wanted(spreads[d], reach);
  std::uint32_t columns[kMaxLayeredDimensions], cells[kMaxLayeredDimensions], count = 0;
  for (; count < kMaxLayeredDimensions; ++count) {
    std::uint32_t most = 0;
    for (std::uint32_t d = 1; d < dims; ++d)
      if (wanted[d] > wanted[most]) most = d;
    if (wanted[most] <= 1) break;
    columns[count] = most;
    cells[count] = wanted[most];
    wanted[most] = 1;
  }

  for (;;) {
    double product = 1;
    std::uint32_t longest = 0;
    for (std::uint32_t d = 0; d < count; ++d) {
      product *= cells[d];
      if (cells[d] > cells[longest]) longest = d;
    }
    if (product <= static_cast<double>(most_cells)) break;
    cells[longest] = (cells[longest] + 1) / 2;  // 1 in the end, when product is
  }

  grid.cells = 1;
  // Codes distinguish some hundred times as many places as there are boxes, with 60 bits at most.
  std::uint32_t code_bits = 8;
  while (code_bits < 40 && boxes >> (code_bits - 8) != 0) ++code_bits;
  grid.curve.bits = count == 0 ? 0 : (code_bits + count - 1) / count;
  if (grid.curve.bits > 20) grid.curve.bits = 20;
  for (std::uint32_t d = 0; d < count; ++d) {
    const BoxSpread& spread = spreads[columns[d]];
    const double side = layered_grid::side_of(spread);
    layered_grid::add_dimension(grid.cell, columns[d], spread.extent.low, side, cells[d]);
    layered_grid::add_dimension(grid.curve, columns[d], spread.extent.low, side,
                                1u << grid.curve.bits);
    grid.cells *= cells[d];
  }
  return grid;
}

}  // namespace gpujoin
