#include "engine/joins/part_ahead.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "points.h"

namespace gpujoin {
namespace {

constexpr std::uint64_t kRows = 1000, kPartRows = 100;

/// Uniform points of one column, divided.
struct Sides {
  explicit Sides(std::uint64_t limit_bytes) : budget(limit_bytes), pool(3) {
    test::Random random(11);
    for (double& value : values) value = random.unit();
    const Dataset data{values.data(), nullptr, kRows, 1, ScalarType::kFloat64};
    rows = data;
    side.emplace(budget, rows, CutColumn{0, 0}, kPartRows, 0, nullptr, pool);
    while (side->divide()) {
    }
  }

  std::vector<double> values = std::vector<double>(kRows);
  MemoryBudget budget;
  WorkerPool pool;
  Dataset rows{};
  std::optional<DividedSide> side;
};

std::vector<std::int64_t> ids(const RowCopy& rows) { return {rows.ids.begin(), rows.ids.end()}; }

TEST(PartAhead, is_the_part_that_was_begun) {
  Sides sides(0);
  PartAhead ahead;
  RowCopy rows;
  EXPECT_FALSE(ahead.take(*sides.side, 0, &rows)) << "none was begun";
  for (std::size_t part = 0; part < sides.side->parts(); ++part) {
    ahead.begin(*sides.side, part);
    ahead.begin(*sides.side, part);
    ASSERT_TRUE(ahead.take(*sides.side, part, &rows));
    EXPECT_EQ(ids(rows), ids(sides.side->load(part)));
    EXPECT_EQ(rows.view.first_chunk, rows.coordinates.data());
    EXPECT_FALSE(ahead.take(*sides.side, part, &rows)) << "it was taken";
  }
}

TEST(PartAhead, forgets_what_is_not_wanted) {
  Sides sides(0), others(0);
  const std::uint64_t held = sides.budget.used();
  PartAhead ahead;
  RowCopy rows;
  EXPECT_FALSE(ahead.drop());
  ahead.begin(*sides.side, 1);
  EXPECT_FALSE(ahead.take(*sides.side, 2, &rows));
  EXPECT_EQ(sides.budget.used(), held);
  ahead.begin(*sides.side, 1);
  EXPECT_FALSE(ahead.take(*others.side, 1, &rows));
  EXPECT_EQ(sides.budget.used(), held);
  ahead.begin(*sides.side, 1);
  ahead.begin(*sides.side, 2);
  EXPECT_TRUE(ahead.take(*sides.side, 2, &rows));
  rows = {};
  ahead.begin(*sides.side, 1);
  EXPECT_TRUE(ahead.drop());
  EXPECT_FALSE(ahead.drop());
  EXPECT_EQ(sides.budget.used(), held);
  ahead.begin(*sides.side, 1);  // and nobody asks
}

TEST(PartAhead, is_not_there_where_memory_ends_or_the_pool_has_stopped) {
  Sides tight(kRows * sizeof(std::uint32_t) + kPartRows);
  const std::uint64_t held = tight.budget.used();
  PartAhead ahead;
  RowCopy rows;
  ahead.begin(*tight.side, 1);
  EXPECT_FALSE(ahead.take(*tight.side, 1, &rows));
  EXPECT_EQ(tight.budget.used(), held);
  EXPECT_THROW(tight.side->load(1), MemoryLimitExceeded);
  Sides sides(0);
  sides.pool.stop();
  ahead.begin(*sides.side, 1);
  EXPECT_FALSE(ahead.take(*sides.side, 1, &rows));
}

}  // namespace
}  // namespace gpujoin
