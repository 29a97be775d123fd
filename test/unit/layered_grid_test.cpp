// core/layered_grid.h: no pair is missed whatever the numbers, and the layout keeps its bounds.

#include "core/layered_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "points.h"

namespace gpujoin::test {
namespace {

/// A spread that need have nothing to do with the boxes.
BoxSpread any_spread(Random& random) {
  static const std::vector<double> special = {0, 1, -1, kMax, -kMax, kDenormal, DBL_MIN, 1e-3};
  const auto pick = [&] {
    return random.index(2) == 0 ? random.pick(special) : random.between(-10, 10);
  };
  const double a = pick(), b = pick();
  const double length = std::abs(random.index(3) == 0 ? pick() : random.between(0, 0.1));
  return {{std::min(a, b), std::max(a, b)}, length};
}

double any_bound(Random& random) {
  static const std::vector<double> special = {-kInf, kInf, -kMax, kMax, 0, -0.0, 1, above(1)};
  if (random.index(4) == 0) return random.pick(special);
  return random.index(5) == 0 ? random.any_finite() : random.between(-12, 12);
}

std::vector<double> any_box(Random& random, std::uint32_t dims) {
  std::vector<double> box(2 * dims);
  for (std::uint32_t d = 0; d < dims; ++d) {
    const double a = any_bound(random);
    const double b = random.index(3) == 0 ? any_bound(random) : a + random.unit() * 0.3;
    box[d] = std::min(a, b);
    box[dims + d] = std::max(a, b);
  }
  return box;
}

LayeredGrid any_grid(Random& random, std::uint32_t dims, double reach) {
  BoxSpread spreads[kMaxBoxDimensions];
  for (std::uint32_t d = 0; d < dims; ++d) spreads[d] = any_spread(random);
  const std::uint64_t boxes = random.index(100000);
  return make_layered_grid(boxes, dims, spreads, reach, random.index(1 << 16));
}

TEST(LayeredGrid, two_boxes_of_a_pair_share_a_cell) {
  Random random(401);
  std::uint64_t pairs = 0, selective = 0;
  for (int round = 0; round < 400; ++round) {
    const std::uint32_t dims = 1 + static_cast<std::uint32_t>(random.index(kMaxBoxDimensions));
    const double eps = random.index(2) == 0 ? 0 : random.unit();
    const BoxTest test = make_box_test(Metric::kL2, eps);
    const LayeredGrid grid = any_grid(random, dims, test.reach);
    for (int i = 0; i < 300; ++i) {
      const std::vector<double> a = any_box(random, dims);
      std::vector<double> b = any_box(random, dims);
      if (i % 2 == 0)  // near a
        for (std::uint32_t j = 0; j < 2 * dims; ++j) b[j] = a[j] + random.between(-0.01, 0.01);
      if (!is_box(b.data(), dims)) continue;
      if (!passes(test, a.data(), b.data(), dims)) continue;
      ++pairs;
      const CellRectangle probe = cells_of_box(grid, a.data(), dims, test.reach);
      const CellRectangle own = cells_of_box(grid, b.data(), dims, 0);
      for (std::uint32_t d = 0; d < grid.cell.dims; ++d) {
        ASSERT_LE(probe.first[d], own.first[d] + own.count[d] - 1);
        ASSERT_LE(own.first[d], probe.first[d] + probe.count[d] - 1);
      }
      selective += probe.cells < grid.cells;
    }
  }
  EXPECT_GT(pairs, 10000u);
  EXPECT_GT(selective, 1000u);
}

TEST(LayeredGrid, cells_of_a_rectangle_are_each_numbered_once_and_ascend) {
  Random random(402);
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t dims = 1 + static_cast<std::uint32_t>(random.index(4));
    const LayeredGrid grid = any_grid(random, dims, 0);
    const CellRectangle cells = cells_of_box(grid, any_box(random, dims).data(), dims, 0);
    ASSERT_GE(cells.cells, 1u);
    ASSERT_LE(cells.cells, grid.cells);
    std::uint32_t before = 0;
    for (std::uint32_t i = 0; i < std::min(cells.cells, 5000u); ++i) {
      const std::uint32_t number = cell_of_rectangle(grid, cells, i);
      ASSERT_LT(number, grid.cells);
      ASSERT_TRUE(i == 0 || number > before);
      before = number;
      std::uint32_t rest = number;  // its coordinates lie in the rectangle
      for (std::uint32_t d = grid.cell.dims; d-- > 0;) {
        const std::uint32_t at = rest % grid.cell.cells[d];
        rest /= grid.cell.cells[d];
        ASSERT_GE(at, cells.first[d]);
        ASSERT_LT(at, cells.first[d] + cells.count[d]);
      }
    }
  }
}

TEST(LayeredGrid, the_layout_keeps_its_bounds) {
  Random random(403);
  for (int round = 0; round < 2000; ++round) {
    BoxSpread spreads[kMaxBoxDimensions];
    const std::uint32_t dims = 1 + static_cast<std::uint32_t>(random.index(kMaxBoxDimensions));
    for (std::uint32_t d = 0; d < dims; ++d) spreads[d] = any_spread(random);
    const std::uint64_t boxes = random.bits() >> (32 + random.index(32));
    const std::uint64_t most_words = random.bits() >> (38 + random.index(26));
    const double reach = random.index(2) == 0 ? 0 : std::abs(random.any_finite());
    const LayeredGrid grid = make_layered_grid(boxes, dims, spreads, reach, most_words, 256);
    ASSERT_LE(grid.cell.dims, kMaxLayeredDimensions);
    ASSERT_LE(grid.curve.dims * grid.curve.bits, 60u);
    ASSERT_GE(grid.parts, 1u);
    ASSERT_LE(grid.parts, kMaxParts);
    ASSERT_LE(grid.words, kWordBits);
    ASSERT_LE(grid.parts, grid.words * kWordBits);
    ASSERT_EQ(grid.part_boxes % 256, 0u);
    ASSERT_GE(std::uint64_t{grid.parts} * grid.part_boxes, boxes);
    if (boxes > 0) {
      ASSERT_LT(std::uint64_t{grid.parts - 1} * grid.part_boxes, boxes) << "no part is empty";
    }
    ASSERT_LE(grid.cells, kMostLayeredCells);
    ASSERT_TRUE(grid.cells == 1 || grid.table_words() <= most_words);
    std::uint64_t product = 1;
    for (std::uint32_t d = 0; d < grid.cell.dims; ++d) {
      product *= grid.cell.cells[d];
      ASSERT_GT(grid.cell.width[d], 0);
      ASSERT_LE(grid.cell.width[d], kMax);
    }
    ASSERT_EQ(product, grid.cells);
  }
}

TEST(LayeredGrid, cells_are_as_wide_as_a_typical_box_where_there_is_room) {
  const BoxSpread spreads[] = {{{0, 1}, 0.01}, {{-5, 5}, 1}};
  const LayeredGrid grid = make_layered_grid(100000, 2, spreads, 0, 1 << 22);
  ASSERT_EQ(grid.cell.dims, 2u);
  EXPECT_EQ(grid.cell.column[0], 0u) << "the side with the most cells comes first";
  EXPECT_EQ(grid.cell.cells[0], 100u);
  EXPECT_EQ(grid.cell.cells[1], 10u);
  EXPECT_NEAR(grid.cell.width[0], 0.01, 1e-12);
  const LayeredGrid wider = make_layered_grid(100000, 2, spreads, 0.03, 1 << 22);
  EXPECT_EQ(wider.cell.cells[0], 25u) << "wider by the distance that boxes may be apart";
}

TEST(LayeredGrid, large_boxes_come_last_and_neighbours_together) {
  const BoxSpread spreads[] = {{{0, 1}, 0.01}, {{0, 1}, 0.01}};
  const LayeredGrid grid = make_layered_grid(100000, 2, spreads, 0, 1 << 22);
  const double small[] = {0.9, 0.9, 0.91, 0.91}, near[] = {0.901, 0.9, 0.911, 0.91};
  const double far[] = {0.1, 0.5, 0.11, 0.51};
  const double large[] = {0.1, 0.1, 0.4, 0.4}, all[] = {0, 0, 1, 1},
               endless[] = {-kInf, 0, kInf, 1};
  const auto code = [&](const double* box) { return curve_code(grid, box, 2); };
  const auto between = [](std::uint64_t a, std::uint64_t b) { return a < b ? b - a : a - b; };
  EXPECT_LT(between(code(small), code(near)), between(code(small), code(far)));
  EXPECT_LT(std::max(code(small), code(far)), code(large));
  EXPECT_LT(code(large), code(all));
  EXPECT_LT(code(endless), (std::uint64_t{1} << grid.code_bits()) - 1);
  EXPECT_GT(cells_of_box(grid, large, 2, 0).cells, kMostCellsOfBox);
}

}  // namespace
}  // namespace gpujoin::test
