// The order of the CPU engine's index: cell, sort value, row, also where a code stands for many
// values and where a run of one code goes beyond what a task lists.

#include "cpu/index/grid_index.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "points.h"

namespace gpujoin::test {
namespace {

struct IndexedPoint {
  std::uint64_t key;
  double value;
  std::uint32_t row;

  auto operator<=>(const IndexedPoint&) const = default;
};

class GridIndexOrder : public testing::TestWithParam<std::uint32_t> {
 protected:
  /// Indexes points by cells of width 1 in column 0 and sort values of so many bits in column 1.
  void expect_sorted(const std::vector<double>& values) {
    const Points points(2, values);
    const Dataset data = points.view();
    const std::uint32_t column = 0;
    const Extent extent{0, 4};
    cpu::IndexLayout layout{make_sort_layout(make_grid(1, &column, &extent, 1), CellOrder::kLinear,
                                             1, extent, GetParam()),
                            {},
                            false};
    layout.frame.order = {0, 1};
    WorkerPool pool(3);
    const cpu::GridIndex index =
        cpu::build_index(pool, budget_, layout, cpu::make_index_columns(pool, budget_, data, {}));
    std::vector<IndexedPoint> found(index.points);
    for (std::size_t cell = 0; cell < index.cells(); ++cell) {
      ASSERT_LT(index.cell_starts[cell], index.cell_starts[cell + 1]);
      for (std::uint32_t at = index.cell_starts[cell]; at < index.cell_starts[cell + 1]; ++at) {
        found[at] = {index.cell_keys[cell], index.sort_values[at], index.rows[at]};
        std::uint32_t there;
        cpu::cell_of_row(layout.order.grid, data, index.distances, index.rows[at], &there);
        ASSERT_EQ(cell_key(layout.order.grid, layout.order.cell_order, &there), found[at].key);
        double coordinates[2];
        index.load_point(at, coordinates);
        ASSERT_EQ(coordinates[1], found[at].value);
        ASSERT_EQ(values[2 * found[at].row + 1], found[at].value);
        ASSERT_EQ(index.ids[at], found[at].row);
      }
    }
    for (std::size_t at = 1; at < found.size(); ++at) ASSERT_LT(found[at - 1], found[at]) << at;
    std::uint32_t last = 0;
    for (std::size_t at = found.size(); at < index.rows.size(); ++at) {
      ASSERT_FALSE(std::isfinite(values[2 * index.rows[at]]));
      ASSERT_TRUE(at == found.size() || last < index.rows[at]);
      last = index.rows[at];
    }
  }

 private:
  MemoryBudget budget_{0};
};

INSTANTIATE_TEST_SUITE_P(Bits, GridIndexOrder, testing::Values(1u, 4u, 52u));

TEST_P(GridIndexOrder, is_by_cell_value_and_row) {
  Random random(150);
  for (const std::size_t rows : {1, 7, 1000, 65536, 65537, 200000}) {
    std::vector<double> values(2 * rows);
    for (double& x : values) x = random.between(-0.5, 4.5);
    for (std::size_t i = 0; i < rows; i += 13)
      values[2 * i] = std::numeric_limits<double>::quiet_NaN();
    expect_sorted(values);
    if (HasFatalFailure()) return;
  }
}

TEST_P(GridIndexOrder, of_equal_points_is_that_of_rows) {
  Random random(151);
  std::vector<double> values(2 * 150000, 2.5);
  expect_sorted(values);
  for (double& x : values) x = static_cast<double>(random.index(3));
  expect_sorted(values);
}

}  // namespace
}  // namespace gpujoin::test
