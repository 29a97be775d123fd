// Cell walks of src/core/cell_walk.h, exhaustively on small grids of 1 to 4 dimensions.

#include "core/cell_walk.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace gpujoin::test {
namespace {

using Cell = std::vector<std::uint32_t>;

GridGeometry grid_of(const std::vector<std::uint32_t>& cells) {
  GridGeometry grid{};
  grid.dims = static_cast<std::uint32_t>(cells.size());
  grid.bits = most_grid_bits(grid.dims);
  for (std::size_t d = 0; d < cells.size(); ++d) grid.cells[d] = cells[d];
  return grid;
}

std::vector<Cell> all_cells(const GridGeometry& grid) {
  std::vector<Cell> cells = {{}};
  for (std::uint32_t d = 0; d < grid.dims; ++d) {
    std::vector<Cell> longer;
    for (const Cell& cell : cells) {
      for (std::uint32_t x = 0; x < grid.cells[d]; ++x) {
        longer.push_back(cell);
        longer.back().push_back(x);
      }
    }
    cells = std::move(longer);
  }
  return cells;
}

bool adjacent(const Cell& a, const Cell& b) {
  for (std::size_t d = 0; d < a.size(); ++d)
    if (std::abs(static_cast<int>(a[d]) - static_cast<int>(b[d])) > 1) return false;
  return true;
}

const std::vector<std::vector<std::uint32_t>> kGrids = {
    {1},       {2},       {7},       {1, 1},    {3, 4},       {5, 2},       {1, 6},      {2, 2, 2},
    {3, 4, 5}, {4, 1, 3}, {6, 3, 2}, {3, 3, 3}, {2, 3, 2, 3}, {3, 4, 2, 3}, {4, 4, 4, 4}};

/// How often each unordered pair of different cells is visited, from either side.
std::map<std::pair<Cell, Cell>, int> visited_pairs(const GridGeometry& grid,
                                                   AccessPattern pattern) {
  std::map<std::pair<Cell, Cell>, int> visited;
  for (const Cell& cell : all_cells(grid)) {
    for (std::uint32_t number = 0; number < neighbor_count(grid.dims); ++number) {
      Cell neighbor(grid.dims);
      if (!neighbor_cell(grid, cell.data(), number, neighbor.data()) || neighbor == cell) continue;
      if (visits(pattern, grid.dims, cell.data(), neighbor.data()))
        ++visited[std::minmax(cell, neighbor)];
    }
  }
  return visited;
}

void expect_each_adjacent_pair(AccessPattern pattern, int times) {
  for (const auto& cells : kGrids) {
    const GridGeometry grid = grid_of(cells);
    const auto visited = visited_pairs(grid, pattern);
    const std::vector<Cell> all = all_cells(grid);
    std::size_t pairs = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = i + 1; j < all.size(); ++j) {
        if (!adjacent(all[i], all[j])) continue;
        ++pairs;
        const auto found = visited.find(std::minmax(all[i], all[j]));
        ASSERT_NE(found, visited.end()) << "dims " << grid.dims;
        ASSERT_EQ(found->second, times) << "dims " << grid.dims;
      }
    }
    EXPECT_EQ(visited.size(), pairs) << "cells that are not adjacent were visited";
  }
}

TEST(CellWalk, linear_id_visits_each_pair_of_adjacent_cells_once) {
  expect_each_adjacent_pair(AccessPattern::kLinearId, 1);
}

TEST(CellWalk, unicomp_visits_each_pair_of_adjacent_cells_once) {
  expect_each_adjacent_pair(AccessPattern::kUnicomp, 1);
}

TEST(CellWalk, full_visits_each_pair_of_adjacent_cells_from_both_sides) {
  expect_each_adjacent_pair(AccessPattern::kFull, 2);
}

TEST(CellWalk, half_walks_never_visit_the_cell_itself) {
  for (const auto& cells : kGrids) {
    const GridGeometry grid = grid_of(cells);
    for (const Cell& cell : all_cells(grid)) {
      EXPECT_FALSE(visits(AccessPattern::kLinearId, grid.dims, cell.data(), cell.data()));
      EXPECT_FALSE(visits(AccessPattern::kUnicomp, grid.dims, cell.data(), cell.data()));
      EXPECT_TRUE(visits(AccessPattern::kFull, grid.dims, cell.data(), cell.data()));
    }
  }
}

TEST(CellWalk, linear_id_visits_later_cells_only) {
  const GridGeometry grid = grid_of({4, 4, 4});
  for (const Cell& a : all_cells(grid)) {
    for (const Cell& b : all_cells(grid)) {
      if (adjacent(a, b)) {
        EXPECT_EQ(visits(AccessPattern::kLinearId, 3, a.data(), b.data()), b > a);
      }
    }
  }
}

TEST(CellWalk, neighbor_numbers_name_every_cell_inside_the_grid_once) {
  for (const auto& cells : kGrids) {
    const GridGeometry grid = grid_of(cells);
    const std::vector<Cell> all = all_cells(grid);
    for (const Cell& cell : all) {
      std::multiset<Cell> found;
      for (std::uint32_t number = 0; number < neighbor_count(grid.dims); ++number) {
        Cell neighbor(grid.dims);
        if (neighbor_cell(grid, cell.data(), number, neighbor.data())) found.insert(neighbor);
      }
      std::multiset<Cell> expected;
      for (const Cell& other : all)
        if (adjacent(cell, other)) expected.insert(other);
      ASSERT_EQ(found, expected) << "dims " << grid.dims;
    }
  }
}

TEST(CellWalk, the_middle_number_is_the_cell_itself) {
  std::uint32_t power = 1;
  for (std::uint32_t dims = 0; dims <= kMaxGridDimensions; ++dims) {
    EXPECT_EQ(neighbor_count(dims), power);
    const GridGeometry grid = grid_of(Cell(dims, 9));
    const Cell cell(dims, 4);
    Cell neighbor(dims);
    ASSERT_TRUE(neighbor_cell(grid, cell.data(), neighbor_count(dims) / 2, neighbor.data()));
    EXPECT_EQ(neighbor, cell);
    power *= 3;
  }
}

TEST(CellWalk, borders_of_the_largest_grid_have_no_cell_beyond) {
  const std::uint32_t most = 1u << 30;
  const GridGeometry grid = grid_of({most});
  const std::uint32_t first = 0, last = most - 1;
  std::uint32_t neighbor = 0;
  EXPECT_FALSE(neighbor_cell(grid, &first, 0, &neighbor));
  ASSERT_TRUE(neighbor_cell(grid, &first, 2, &neighbor));
  EXPECT_EQ(neighbor, 1u);
  EXPECT_FALSE(neighbor_cell(grid, &last, 2, &neighbor));
  ASSERT_TRUE(neighbor_cell(grid, &last, 0, &neighbor));
  EXPECT_EQ(neighbor, last - 1);
}

}  // namespace
}  // namespace gpujoin::test
