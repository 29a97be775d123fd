// Sort codes of src/core/sort_code.h and the search in src/core/reach.h: codes order points by cell
// and value, and the search never misses a point within reach.

#include "core/sort_code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/reach.h"
#include "core/threshold.h"
#include "points.h"

namespace gpujoin::test {
namespace {

/// A grid of four cells along each of `dims` dimensions, which is laid over nothing.
GridGeometry small_grid(std::uint32_t dims) {
  GridGeometry grid{};
  grid.dims = dims;
  grid.bits = dims == 0 ? 0 : 2;
  for (std::uint32_t d = 0; d < dims; ++d) grid.cells[d] = 4;
  return grid;
}

SortLayout layout_over(const GridGeometry& grid, const std::vector<double>& values,
                       std::uint32_t most_bits = 52) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return make_sort_layout(grid, CellOrder::kLinear, 0, {*low, *high}, most_bits);
}

/// Columns of values that hurt; each is sorted on its own.
std::vector<std::vector<double>> nasty_columns() {
  Random random(131);
  std::vector<std::vector<double>> columns = {
      {0},
      {0, -0.0},
      {7.5, 7.5, 7.5},
      {kMax, kMax},
      {-kMax, kMax, 0, 1, 1e308, -1e308},
      {-1e308, 1e308, -1e308, 0.9e308, kMax - 1e308, above(kMax - 1e308), 0},
      {0, kDenormal, 2 * kDenormal, 100 * kDenormal},
      {-DBL_MIN, DBL_MIN, 0, kDenormal},
      {1, above(1), below(1), above(above(1))},
      {0, 1e300, 1, 2, 1e-300}};
  for (int i = 0; i < 20; ++i) {
    std::vector<double> column;
    const double scale = std::exp2(random.between(-100, 100));
    const double offset = scale * (random.index(2) ? 1e6 * random.unit() : 0);
    for (int j = 0; j < 60; ++j) column.push_back(offset + scale * random.between(-1, 1));
    columns.push_back(column);
  }
  return columns;
}

TEST(SortCode, steps_are_monotone_and_within_their_bits) {
  for (std::vector<double> column : nasty_columns()) {
    for (const std::uint32_t most_bits : {1u, 8u, 32u, 52u}) {
      const SortLayout layout = layout_over(small_grid(2), column, most_bits);
      const std::uint64_t last = (std::uint64_t{1} << layout.value_bits) - 1;
      EXPECT_LE(layout.value_bits, most_bits);
      std::vector<double> values = column;
      for (const double x : column) values.insert(values.end(), {above(x), below(x), -x, x / 2});
      values.insert(values.end(), {-kInf, kInf, kMax, -kMax, 0});
      std::sort(values.begin(), values.end());
      std::uint64_t before = 0;
      for (const double x : values) {
        const std::uint64_t step = sort_step(layout, x);
        ASSERT_LE(step, last);
        ASSERT_GE(step, before) << "x " << x << ", low " << layout.low << ", scale "
                                << layout.scale;
        before = step;
      }
      EXPECT_EQ(sort_step(layout, *std::min_element(column.begin(), column.end())), 0u);
      EXPECT_EQ(sort_step(layout, -kInf), 0u) << "low " << layout.low << ", scale " << layout.scale;
    }
  }
}

TEST(SortCode, the_smallest_and_largest_value_take_the_ends) {
  const SortLayout layout = layout_over(small_grid(1), {-3, 5}, 20);
  EXPECT_EQ(sort_step(layout, -3), 0u);
  EXPECT_EQ(sort_step(layout, 5), (1u << 20) - 1);
  EXPECT_NEAR(static_cast<double>(sort_step(layout, 1)), 0x1p19, 1);
}

TEST(SortCode, cells_come_before_values_and_points_that_are_not_finite_last) {
  for (std::uint32_t dims = 1; dims <= kMaxGridDimensions; ++dims) {
    GridGeometry grid{};
    grid.dims = dims;
    grid.bits = most_grid_bits(dims);
    for (std::uint32_t d = 0; d < dims; ++d) grid.cells[d] = 1u << grid.bits;
    for (const CellOrder order : {CellOrder::kLinear, CellOrder::kZOrder, CellOrder::kHilbert}) {
      const SortLayout layout = make_sort_layout(grid, order, 0, {0, 1}, 52);
      ASSERT_GE(layout.value_bits, 1u);
      Random random(132);
      for (int i = 0; i < 200; ++i) {
        std::uint32_t a[kMaxGridDimensions], b[kMaxGridDimensions];
        for (std::uint32_t d = 0; d < dims; ++d) {
          a[d] = i == 0 ? (1u << grid.bits) - 1 : random.bits() & ((1u << grid.bits) - 1);
          b[d] = random.bits() & ((1u << grid.bits) - 1);
        }
        const std::uint64_t key_a = cell_key(grid, order, a), key_b = cell_key(grid, order, b);
        const double x = random.between(-1, 2), y = random.between(-1, 2);
        const std::uint64_t code_a = sort_code(layout, a, x), code_b = sort_code(layout, b, y);
        ASSERT_EQ(cell_key_of_code(layout, code_a), key_a);
        ASSERT_EQ(cell_key_of_code(layout, code_b), key_b);
        ASSERT_LT(code_a, kNotFinite);
        if (key_a != key_b) {
          ASSERT_EQ(code_a < code_b, key_a < key_b);
        }
      }
    }
  }
}

TEST(SortCode, without_a_sort_column_a_code_is_its_cell) {
  const SortLayout layout = make_sort_layout(small_grid(2), CellOrder::kLinear, kNoColumn, {}, 52);
  const std::uint32_t cell[] = {1, 3};
  EXPECT_EQ(sort_code(layout, cell, 5), sort_code(layout, cell, -1e300));
  EXPECT_EQ(cell_key_of_code(layout, sort_code(layout, cell, 5)), 7u);
}

/// Points of several cells with codes in order, as an index holds them.
struct CodedPoints {
  std::vector<std::uint64_t> codes;
  std::vector<std::pair<std::uint32_t, double>> points;  ///< cell and value, in the same order

  CodedPoints(const SortLayout& layout, const std::vector<double>& values) {
    for (std::uint32_t cell = 0; cell < 4; ++cell)
      for (const double x : values) points.emplace_back(cell, x);
    const auto code = [&](const auto& point) {
      return sort_code(layout, &point.first, point.second);
    };
    std::sort(points.begin(), points.end(),
              [&](const auto& a, const auto& b) { return code(a) < code(b); });
    for (const auto& point : points) codes.push_back(code(point));
    codes.push_back(kNotFinite);
  }
};

void expect_none_missed(const SortLayout& layout, const std::vector<double>& values, double reach) {
  const CodedPoints index(layout, values);
  const auto size = static_cast<std::uint32_t>(index.codes.size());
  for (std::uint32_t cell = 0; cell < 4; ++cell) {
    for (const double x : values) {
      const PositionRange range =
          points_in_reach(layout, index.codes.data(), 0, size, &cell, x, reach);
      ASSERT_LE(range.begin, range.end);
      ASSERT_LT(range.end, size) << "the point that is not finite is in no cell";
      for (std::uint32_t i = 0; i < index.points.size(); ++i) {
        const bool found = range.begin <= i && i < range.end;
        const auto [its_cell, y] = index.points[i];
        if (its_cell != cell) {
          ASSERT_FALSE(found) << "a point of another cell";
        } else if (std::abs(x - y) <= reach) {
          ASSERT_TRUE(found) << "x " << x << ", y " << y << ", reach " << reach << ", low "
                             << layout.low << ", scale " << layout.scale;
        }
      }
    }
  }
}

TEST(Reach, no_point_within_reach_is_missed) {
  for (const std::vector<double>& column : nasty_columns()) {
    std::vector<double> all_reach = {0,   kDenormal, DBL_MIN, 1e-300, 1e-10, 1,
                                     1e8, 1e154,     1e300,   1e308,  kMax};
    for (std::size_t i = 1; i < column.size(); i += 7) {
      const double reach = std::abs(column[i] - column[0]);
      if (reach <= kMax) all_reach.insert(all_reach.end(), {reach, std::max(0.0, below(reach))});
    }
    for (const double reach : all_reach) {
      for (const std::uint32_t most_bits : {4u, 52u}) {
        expect_none_missed(layout_over(small_grid(1), column, most_bits), column, reach);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(Reach, no_point_outside_the_extent_is_missed) {
  Random random(133);
  for (int round = 0; round < 30; ++round) {
    const double scale = std::exp2(random.between(-100, 100));
    const double offset = random.index(2) ? scale * 1e6 * random.unit() : 0;
    std::vector<double> values;
    for (int i = 0; i < 20; ++i) values.push_back(offset + scale * random.between(-1, 1));
    const SortLayout layout = layout_over(small_grid(1), values, random.index(2) ? 24 : 52);
    const double reach = scale * std::exp2(random.between(-30, 3));
    values.insert(values.end(), {kMax, -kMax, 1e20, 3.4e38, -3.4e38});
    for (int i = 0; i < 10; ++i) values.push_back(random.any_finite());
    for (int i = 0; i < 10; ++i) values.push_back(offset + 100 * scale * random.between(-1, 1));
    for (std::size_t i = 0; i < 45; i += 3)  // next to one another
      if (std::abs(values[i] + reach) <= kMax) values.push_back(values[i] + reach);
    expect_none_missed(layout, values, reach);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Reach, without_a_sort_column_a_whole_cell_is_looked_at) {
  const SortLayout layout = make_sort_layout(small_grid(1), CellOrder::kLinear, kNoColumn, {}, 52);
  const CodedPoints index(layout, {1, 2, 3});
  const std::uint32_t cell = 2;
  const PositionRange range = points_in_reach(layout, index.codes.data(), 0, 13, &cell, 1, 0);
  EXPECT_EQ(range.begin, 6u);
  EXPECT_EQ(range.end, 9u);
}

TEST(Reach, far_points_are_left_out) {
  std::vector<double> values;
  for (int i = 0; i < 100; ++i) values.push_back(i);
  const SortLayout layout = layout_over(small_grid(1), values);
  const CodedPoints index(layout, values);
  const std::uint32_t cell = 1;
  const PositionRange range = points_in_reach(layout, index.codes.data(), 0, 401, &cell, 50, 2);
  EXPECT_EQ(range.begin, 100u + 48);
  EXPECT_EQ(range.end, 100u + 53);
}

TEST(Reach, first_not_below_searches_any_range) {
  const std::vector<std::uint64_t> values = {1, 3, 3, 3, 8};
  const auto find = [&](std::uint32_t begin, std::uint32_t end, std::uint64_t value) {
    return first_not_below(values.data(), begin, end, value);
  };
  EXPECT_EQ(find(0, 5, 0), 0u);
  EXPECT_EQ(find(0, 5, 3), 1u);
  EXPECT_EQ(find(2, 5, 3), 2u);
  EXPECT_EQ(find(0, 5, 4), 4u);
  EXPECT_EQ(find(0, 5, 9), 5u);
  EXPECT_EQ(find(0, 3, 9), 3u);
  EXPECT_EQ(find(2, 2, 1), 2u);
}

}  // namespace
}  // namespace gpujoin::test
