#include "engine/joins/divided_side.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "points.h"

namespace gpujoin {
namespace {

using test::Random;

/// Points of two columns, of which the second one cuts: some equal values, some that are not
/// finite.
std::vector<double> make_points(std::uint64_t rows, Random& random) {
  std::vector<double> points(2 * rows);
  for (std::uint64_t row = 0; row < rows; ++row) {
    points[2 * row] = static_cast<double>(row);
    double& value = points[2 * row + 1];
    value = random.unit();
    if (random.index(5) == 0) value = 0.25;
    if (random.index(50) == 0) value = std::numeric_limits<double>::quiet_NaN();
    if (random.index(50) == 0) value = -INFINITY;
  }
  return points;
}

struct Parts {
  std::vector<std::vector<std::int64_t>> ids;
  std::vector<Extent> extents;
};

/// The parts of all rows. Each part's copy has what the rows have.
Parts divide(const std::vector<double>& points, std::uint64_t part_rows, unsigned threads) {
  MemoryBudget budget(0);
  WorkerPool pool(threads);
  Dataset data{};
  data.first_chunk = points.data();
  data.rows = points.size() / 2;
  data.dims = 2;
  data.scalar = ScalarType::kFloat64;
  std::vector<std::uint64_t> numbers(data.rows);
  for (std::uint64_t row = 0; row < data.rows; ++row) numbers[row] = 3 * row;
  DividedSide side(budget, data, {1, 1}, part_rows, 1 << 20, nullptr, pool, {1, {numbers.data()}});
  while (side.divide()) {
  }
  EXPECT_FALSE(side.divide());
  Parts parts;
  for (std::size_t p = 0; p < side.parts(); ++p) {
    const RowCopy copy = side.load(p);
    EXPECT_EQ(copy.view.rows, side.rows(p));
    EXPECT_LE(copy.view.rows, part_rows);
    parts.extents.push_back(side.extent(p));
    parts.ids.emplace_back(copy.ids.begin(), copy.ids.end());
    const Buffer<std::int64_t> ids = side.load_ids(p);
    for (std::uint64_t i = 0; i < copy.view.rows; ++i) {
      const auto row = static_cast<std::uint64_t>(copy.ids[i]);
      EXPECT_EQ(coordinate(copy.view, i, 0), static_cast<double>(row));
      EXPECT_EQ(static_cast<const std::uint64_t*>(copy.column(0))[i], numbers[row]);
      EXPECT_EQ(ids[i], copy.ids[i]);
    }
  }
  return parts;
}

TEST(DividedSide, has_each_row_once_in_parts_by_value) {
  Random random(5);
  for (const std::uint64_t rows : {0, 1, 2, 64, 1000, 4099})
    for (const std::uint64_t part_rows : {16, 100, 5000}) {
      const std::vector<double> points = make_points(rows, random);
      const Parts parts = divide(points, part_rows, 1);
      std::vector<unsigned> found(rows);
      for (std::size_t p = 0; p < parts.ids.size(); ++p) {
        if (p > 0) {
          EXPECT_LE(parts.extents[p - 1].low, parts.extents[p].low);
        }
        Extent extent = kNoExtent;
        for (const std::int64_t id : parts.ids[p]) {
          const auto row = static_cast<std::uint64_t>(id);
          ++found[row];
          const double value = std::isnan(points[2 * row + 1]) ? INFINITY : points[2 * row + 1];
          include(extent, {value, value});
        }
        EXPECT_EQ(parts.extents[p].low, extent.low);
        EXPECT_EQ(parts.extents[p].high, extent.high);
      }
      EXPECT_EQ(found, std::vector<unsigned>(rows, 1));
    }
}

TEST(DividedSide, is_the_same_for_any_number_of_threads) {
  Random random(6);
  for (const std::uint64_t rows : {0, 3, 1000, 300007}) {
    const std::vector<double> points = make_points(rows, random);
    const Parts one = divide(points, 1 + rows / 9, 1);
    for (const unsigned threads : {2u, 3u, 16u}) {
      const Parts many = divide(points, 1 + rows / 9, threads);
      EXPECT_EQ(many.ids, one.ids);
      ASSERT_EQ(many.extents.size(), one.extents.size());
      for (std::size_t p = 0; p < one.extents.size(); ++p) {
        EXPECT_EQ(many.extents[p].low, one.extents[p].low);
        EXPECT_EQ(many.extents[p].high, one.extents[p].high);
      }
    }
  }
}

}  // namespace
}  // namespace gpujoin
