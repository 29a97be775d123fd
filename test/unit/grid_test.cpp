// The adjacency lemma of src/core/grid.h as a property: whatever the extent, eps and rounding,
// coordinates within reach lie in the same or in adjacent cells, and cells stay within the key's
// bits.

#include "core/grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/threshold.h"
#include "points.h"

namespace gpujoin::test {
namespace {

/// A grid whose every dimension covers `values`' finite range.
GridGeometry grid_over(std::uint32_t dims, const std::vector<double>& values, double reach) {
  Extent extent{kInf, -kInf};
  for (const double x : values) {
    if (!std::isfinite(x)) continue;
    extent.low = std::min(extent.low, x);
    extent.high = std::max(extent.high, x);
  }
  if (extent.low > extent.high) extent = {0, 0};
  const std::vector<Extent> extents(dims, extent);
  std::vector<std::uint32_t> columns(dims);
  for (std::uint32_t d = 0; d < dims; ++d) columns[d] = d;
  return make_grid(dims, columns.data(), extents.data(), reach);
}

/// All pairs of `values` and `outsiders` (which the grid was not laid for) obey the lemma.
void expect_adjacency(const std::vector<double>& values, const std::vector<double>& outsiders,
                      double reach) {
  std::vector<double> all = values;
  all.insert(all.end(), outsiders.begin(), outsiders.end());
  for (std::uint32_t dims = 1; dims <= kMaxGridDimensions; ++dims) {
    const GridGeometry grid = grid_over(dims, values, reach);
    const std::uint32_t d = dims - 1;
    ASSERT_GE(grid.cells[d], 1u);
    ASSERT_LE(grid.cells[d], std::uint64_t{1} << grid.bits);
    ASSERT_LE(grid.dims * grid.bits, 62u);
    std::vector<std::uint32_t> cells;
    for (const double x : all) cells.push_back(cell_coordinate(grid, d, x));
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_LT(cells[i], grid.cells[d]) << "x " << all[i];
      for (std::size_t j = i + 1; j < all.size(); ++j) {
        if (!(std::abs(all[i] - all[j]) <= reach)) continue;
        const std::uint32_t apart = cells[i] > cells[j] ? cells[i] - cells[j] : cells[j] - cells[i];
        ASSERT_LE(apart, 1u) << "x " << all[i] << ", y " << all[j] << ", reach " << reach
                             << ", grid dims " << dims << ", origin " << grid.origin[d]
                             << ", width " << grid.width[d] << ", cells " << grid.cells[d];
      }
    }
  }
}

/// Some points around each of `anchors`: on cell edges, and exactly or almost exactly `reach`
/// apart.
std::vector<double> with_neighbors(const std::vector<double>& anchors, double reach) {
  std::vector<double> values;
  for (const double x : anchors) {
    for (const double y : {x, x + reach, x - reach, x + 2 * reach}) {
      if (!std::isfinite(y)) continue;
      values.push_back(y);
      if (std::isfinite(above(y))) values.push_back(above(y));
      if (std::isfinite(below(y))) values.push_back(below(y));
    }
  }
  return values;
}

TEST(Grid, neighbors_are_adjacent_on_random_data) {
  Random random(21);
  for (int round = 0; round < 300; ++round) {
    const double scale = std::exp2(random.between(-300, 300));
    const double offset = random.index(2) ? scale * random.between(-1e6, 1e6) : 0;
    const double reach = scale * std::exp2(random.between(-60, 4));
    std::vector<double> anchors;
    for (int i = 0; i < 8; ++i) anchors.push_back(offset + scale * random.unit());
    expect_adjacency(with_neighbors(anchors, reach), {}, reach);
    if (HasFatalFailure()) return;
  }
}

TEST(Grid, neighbors_are_adjacent_on_cell_edges) {
  Random random(22);
  for (int round = 0; round < 200; ++round) {
    const double reach = std::exp2(random.between(-20, 20));
    const double low = reach * random.between(-1000, 1000);
    const GridGeometry grid = grid_over(1, {low, low + 1000 * reach}, reach);
    std::vector<double> anchors = {low, low + 1000 * reach};
    for (int i = 0; i < 8; ++i)
      anchors.push_back(grid.origin[0] + static_cast<double>(random.index(1000)) * grid.width[0]);
    expect_adjacency(with_neighbors(anchors, reach), {}, reach);
    if (HasFatalFailure()) return;
  }
}

TEST(Grid, neighbors_are_adjacent_when_eps_is_tiny_against_the_extent) {
  for (const double extent : {1.0, 1e15, 1e300}) {
    for (const double reach :
         {0.0, kDenormal, 1e-300, 0x1p-538, extent * 1e-16, extent * 1e-12, extent * 0x1p-30}) {
      Random random(23);
      std::vector<double> anchors = {0, extent};
      for (int i = 0; i < 10; ++i) anchors.push_back(extent * random.unit());
      for (int i = 0; i < 10; ++i)
        anchors.push_back(extent * 0x1p-30 * static_cast<double>(random.index(1 << 30)));
      expect_adjacency(with_neighbors(anchors, reach), {}, reach);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Grid, neighbors_are_adjacent_when_the_extent_overflows) {
  // high - low is infinite here, and so are x - low for the upper part of the values.
  for (const double high : {1e308, kMax, 0.9e308}) {
    for (const double reach :
         {0.0, 1.0, 1e150, 1.3e154, 1e290, 1e299, 1e305, 0.8e308, 1e308, kMax}) {
      Random random(24);
      const double overflow = kMax - high;  // where x - low starts to overflow
      std::vector<double> anchors = {-high, high, 0, overflow, high / 2};
      for (int i = 0; i < 20; ++i) anchors.push_back(random.between(-1, 1) * high);
      for (int i = 0; i < 10; ++i) anchors.push_back(overflow * random.between(0.99999, 1.00001));
      std::vector<double> values = with_neighbors(anchors, reach);
      std::erase_if(values, [high](double x) { return std::abs(x) > high; });
      expect_adjacency(values, {}, reach);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Grid, neighbors_are_adjacent_among_denormals) {
  for (const double reach : {0.0, kDenormal, 2 * kDenormal, 1e-310, DBL_MIN, 0x1p-1020, 0x1p-538}) {
    Random random(25);
    std::vector<double> anchors = {0, -0.0, kDenormal, -kDenormal, DBL_MIN, -DBL_MIN};
    for (int i = 0; i < 10; ++i)
      anchors.push_back(kDenormal * static_cast<double>(random.index(1000)));
    for (int i = 0; i < 10; ++i) anchors.push_back(DBL_MIN * random.between(-10, 10));
    expect_adjacency(with_neighbors(anchors, reach), {}, reach);
    if (HasFatalFailure()) return;
  }
}

TEST(Grid, neighbors_are_adjacent_for_any_bits) {
  Random random(26);
  for (int round = 0; round < 300; ++round) {
    const double reach = std::abs(random.any_finite());
    std::vector<double> anchors;
    for (int i = 0; i < 8; ++i) anchors.push_back(random.any_finite());
    for (int i = 0; i < 4; ++i) anchors.push_back(reach * random.between(-100, 100));
    std::erase_if(anchors, [](double x) { return !std::isfinite(x); });
    expect_adjacency(with_neighbors(anchors, reach), {}, reach);
    if (HasFatalFailure()) return;
  }
}

TEST(Grid, points_outside_the_extent_are_taken_in) {
  Random random(27);
  for (int round = 0; round < 100; ++round) {
    const double reach = std::exp2(random.between(-10, 3));
    std::vector<double> inside, outside;
    for (int i = 0; i < 8; ++i) inside.push_back(random.between(0, 10));
    for (int i = 0; i < 8; ++i) outside.push_back(random.between(-10, 20));
    outside.insert(outside.end(), {kInf, -kInf, kMax, -kMax, kNan});
    expect_adjacency(with_neighbors(inside, reach), with_neighbors(outside, reach), reach);
    if (HasFatalFailure()) return;
  }
}

TEST(Grid, values_far_outside_the_extent_are_taken_in) {
  // The extent is that of ordinary values; outliers lie anywhere, some next to one another.
  Random random(28);
  for (int round = 0; round < 100; ++round) {
    const double scale = std::exp2(random.between(-200, 200));
    const double reach = scale * std::exp2(random.between(-40, 3));
    std::vector<double> inside, outside;
    for (int i = 0; i < 6; ++i) inside.push_back(scale * random.between(-1, 1));
    for (int i = 0; i < 6; ++i) outside.push_back(random.any_finite());
    for (int i = 0; i < 6; ++i)
      outside.push_back(scale * std::exp2(random.between(0, 60)) * random.between(-1, 1));
    outside.insert(outside.end(), {kMax, -kMax, 3.4e38, -3.4e38, 1e20, -1e20});
    expect_adjacency(with_neighbors(inside, reach), with_neighbors(outside, reach), reach);
    if (HasFatalFailure()) return;
  }
}

TEST(Grid, cells_are_monotone_far_beyond_the_extent) {
  Random random(29);
  for (int round = 0; round < 100; ++round) {
    const double low = random.index(2) ? random.any_finite() : random.between(-1, 1);
    const GridGeometry grid = grid_over(2, {low, low + 1}, std::exp2(random.between(-40, 1)));
    std::vector<double> values = {low, low + 1, kMax, -kMax, kInf, -kInf, 0};
    for (int i = 0; i < 100; ++i) values.push_back(random.any_finite());
    for (int i = 0; i < 100; ++i) values.push_back(low + random.between(-3, 3));
    std::sort(values.begin(), values.end());
    for (std::size_t i = 1; i < values.size(); ++i)
      ASSERT_LE(cell_coordinate(grid, 1, values[i - 1]), cell_coordinate(grid, 1, values[i]))
          << values[i - 1] << ", " << values[i] << " on a grid from " << low;
  }
}

TEST(Grid, special_values_lie_in_some_cell) {
  const GridGeometry grid = grid_over(2, {-5, 0, 5}, 1);
  for (const double x : {kNan, kInf, -kInf, kMax, -kMax, -0.0})
    EXPECT_LT(cell_coordinate(grid, 1, x), grid.cells[1]) << x;
  EXPECT_EQ(cell_coordinate(grid, 0, 0.0), cell_coordinate(grid, 0, -0.0));
}

TEST(Grid, equal_values_make_one_cell) {
  for (const double x : {0.0, -0.0, 1.0, -1e308, kMax, kDenormal}) {
    for (const double reach : {0.0, 1e-300, 1.0, kMax}) {
      const GridGeometry grid = grid_over(3, {x, x, x}, reach);
      for (std::uint32_t d = 0; d < 3; ++d) {
        EXPECT_EQ(grid.cells[d], 1u);
        EXPECT_EQ(cell_coordinate(grid, d, x), 0u);
      }
    }
  }
}

TEST(Grid, cells_are_as_narrow_as_eps_where_bits_allow) {
  const GridGeometry grid = grid_over(2, {0, 1000}, 1);
  EXPECT_GE(grid.cells[0], 999u);
  EXPECT_LE(grid.cells[0], 1001u);
  EXPECT_EQ(cell_coordinate(grid, 0, 0), 0u);
  EXPECT_EQ(cell_coordinate(grid, 0, 1000), grid.cells[0] - 1);
  EXPECT_EQ(cell_coordinate(grid, 0, 500.5), 500u);
}

TEST(Grid, no_dimensions_are_one_cell) {
  const GridGeometry grid = make_grid(0, nullptr, nullptr, 1);
  EXPECT_EQ(grid.dims, 0u);
  EXPECT_EQ(grid.bits, 0u);
}

}  // namespace
}  // namespace gpujoin::test
