// Cell numberings of src/core/cell_order.h: bijections within their bits, checked exhaustively on
// small grids.

#include "core/cell_order.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "points.h"

namespace gpujoin::test {
namespace {

using Cell = std::vector<std::uint32_t>;

GridGeometry grid_of(std::uint32_t dims, std::uint32_t bits) {
  GridGeometry grid{};
  grid.dims = dims;
  grid.bits = bits;
  for (std::uint32_t d = 0; d < dims; ++d) grid.cells[d] = 1u << bits;
  return grid;
}

/// The cells of a grid in the order of their keys; empty where two share one or a key is out of
/// range.
std::vector<Cell> cells_by_key(const GridGeometry& grid, CellOrder order) {
  const std::uint64_t count = std::uint64_t{1} << (grid.dims * grid.bits);
  std::vector<Cell> cells(count);
  for (std::uint64_t n = 0; n < count; ++n) {
    Cell cell(grid.dims);
    for (std::uint32_t d = 0; d < grid.dims; ++d)
      cell[d] = n >> (d * grid.bits) & ((1u << grid.bits) - 1);
    const std::uint64_t key = cell_key(grid, order, cell.data());
    if (key >= count || !cells[key].empty()) return {};
    cells[key] = cell;
  }
  return cells;
}

/// Small grids of every number of dimensions.
std::vector<GridGeometry> small_grids() {
  std::vector<GridGeometry> grids;
  for (std::uint32_t dims = 1; dims <= kMaxGridDimensions; ++dims)
    for (std::uint32_t bits = 1; bits <= 7 && dims * bits <= 12; ++bits)
      grids.push_back(grid_of(dims, bits));
  return grids;
}

TEST(CellOrder, every_order_is_a_bijection_on_small_grids) {
  for (const GridGeometry& grid : small_grids())
    for (const CellOrder order :
         {CellOrder::kAuto, CellOrder::kLinear, CellOrder::kZOrder, CellOrder::kHilbert})
      EXPECT_FALSE(cells_by_key(grid, order).empty())
          << "dims " << grid.dims << ", bits " << grid.bits << ", order "
          << static_cast<int>(order);
}

TEST(CellOrder, consecutive_hilbert_keys_are_adjacent_cells) {
  for (const GridGeometry& grid : small_grids()) {
    const std::vector<Cell> cells = cells_by_key(grid, CellOrder::kHilbert);
    ASSERT_FALSE(cells.empty());
    for (std::size_t key = 1; key < cells.size(); ++key) {
      std::uint32_t steps = 0;
      for (std::uint32_t d = 0; d < grid.dims; ++d)
        steps += std::abs(static_cast<int>(cells[key][d]) - static_cast<int>(cells[key - 1][d]));
      ASSERT_EQ(steps, 1u) << "dims " << grid.dims << ", bits " << grid.bits << ", key " << key;
    }
  }
}

TEST(CellOrder, linear_keys_are_row_major) {
  const GridGeometry grid = grid_of(3, 4);
  const std::uint32_t cell[] = {1, 2, 3};
  EXPECT_EQ(cell_key(grid, CellOrder::kLinear, cell), 0x123u);
  EXPECT_EQ(cell_key(grid, CellOrder::kAuto, cell), 0x123u);
}

TEST(CellOrder, zorder_keys_interleave_bits) {
  const GridGeometry grid = grid_of(2, 3);
  const std::uint32_t cell[] = {0b101, 0b011};
  EXPECT_EQ(cell_key(grid, CellOrder::kZOrder, cell), 0b100111u);
}

TEST(CellOrder, keys_stay_below_their_bits_on_the_largest_grids) {
  Random random(31);
  for (std::uint32_t dims = 1; dims <= kMaxGridDimensions; ++dims) {
    const GridGeometry grid = grid_of(dims, most_grid_bits(dims));
    const std::uint64_t count = std::uint64_t{1} << (dims * grid.bits);
    ASSERT_LE(dims * grid.bits, 62u);
    for (int i = 0; i < 2000; ++i) {
      Cell cell(dims);
      for (std::uint32_t& x : cell)
        x = i == 0 ? (1u << grid.bits) - 1 : random.bits() & ((1u << grid.bits) - 1);
      for (const CellOrder order : {CellOrder::kLinear, CellOrder::kZOrder, CellOrder::kHilbert})
        ASSERT_LT(cell_key(grid, order, cell.data()), count);
    }
  }
}

TEST(CellOrder, neighbors_on_the_largest_grids_have_different_keys) {
  Random random(32);
  for (std::uint32_t dims = 1; dims <= kMaxGridDimensions; ++dims) {
    const GridGeometry grid = grid_of(dims, most_grid_bits(dims));
    for (int i = 0; i < 500; ++i) {
      Cell cell(dims);
      for (std::uint32_t& x : cell) x = random.bits() & ((1u << grid.bits) - 1);
      Cell other = cell;
      const std::uint32_t d = static_cast<std::uint32_t>(random.index(dims));
      other[d] ^= 1u << random.index(grid.bits);
      for (const CellOrder order : {CellOrder::kLinear, CellOrder::kZOrder, CellOrder::kHilbert})
        ASSERT_NE(cell_key(grid, order, cell.data()), cell_key(grid, order, other.data()));
    }
  }
}

TEST(CellOrder, one_cell_has_key_zero) {
  const GridGeometry grid = grid_of(0, 0);
  for (const CellOrder order : {CellOrder::kLinear, CellOrder::kZOrder, CellOrder::kHilbert})
    EXPECT_EQ(cell_key(grid, order, nullptr), 0u);
}

}  // namespace
}  // namespace gpujoin::test
