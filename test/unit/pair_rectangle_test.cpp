// Rectangles cover the matrix of all pairs, each pair once, and none is larger than asked for,
// whatever was asked for before.

#include "core/pair_rectangle.h"

#include <gtest/gtest.h>

#include <vector>

#include "points.h"

namespace gpujoin::test {
namespace {

TEST(PairRectangles, cover_each_pair_once) {
  Random random(2201);
  for (int run = 0; run < 300; ++run) {
    const auto rows = static_cast<std::uint32_t>(1 + random.index(60));
    const auto columns = static_cast<std::uint32_t>(1 + random.index(60));
    const RectangleRows bounds{1 + random.index(10), 10 + random.index(30)};
    std::vector<int> covered(rows * columns, 0);
    PairPlace place{0, 0};
    while (place.row < rows) {
      const std::uint64_t most = bounds.fewest + random.index(random.index(2) == 0 ? 20 : 4000);
      const PairRectangle next = next_rectangle(rows, columns, place, most, bounds);
      ASSERT_LE(next.size(), most);
      ASSERT_LE(next.end_row, rows);
      ASSERT_LE(next.end_column, columns);
      if (random.index(4) == 0) continue;  // it did not fit, and is begun again with fewer
      for (std::uint32_t i = next.first_row; i < next.end_row; ++i)
        for (std::uint32_t j = next.first_column; j < next.end_column; ++j)
          ++covered[i * columns + j];
      place = after(next, columns);
    }
    EXPECT_EQ(covered, std::vector<int>(rows * columns, 1));
  }
}

TEST(PairRectangles, take_whole_rows_where_these_are_allowed) {
  const RectangleRows bounds{256, 1 << 20};
  const PairRectangle one = next_rectangle(1000000, 1000000, {0, 0}, 20000000000, bounds);
  EXPECT_EQ(one.end_row, 20000u);
  EXPECT_EQ(one.end_column, 1000000u);
  const PairRectangle part = next_rectangle(1000000, 4000000000, {512, 0}, 8 << 20, bounds);
  EXPECT_EQ(part.end_row - part.first_row, 256u);
  EXPECT_EQ(part.end_column, (8u << 20) / 256);
}

}  // namespace
}  // namespace gpujoin::test
