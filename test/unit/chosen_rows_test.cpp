// Chosen rows against the rows of the dataset: of data in memory, and of data in a file as a copy
// and as a part of the file.

#include "engine/joins/chosen_rows.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "engine/joins/divided_side.h"
#include "points.h"
#include "stored_points.h"

namespace gpujoin::test {
namespace {

struct NamedRow {
  std::int64_t id;
  std::vector<double> values;

  bool operator<(const NamedRow& other) const { return id < other.id; }
  bool operator==(const NamedRow&) const = default;
};

void add_rows(const Dataset& data, std::vector<NamedRow>* rows) {
  for (std::uint64_t row = 0; row < data.rows; ++row) {
    rows->push_back({data.ids[row], {}});
    for (std::uint32_t d = 0; d < data.dims; ++d)
      rows->back().values.push_back(coordinate(data, row, d));
  }
}

/// All rows of a dataset in memory or in a file.
std::vector<NamedRow> rows_of(const Dataset& data) {
  std::vector<NamedRow> rows;
  MemoryBudget budget(0);
  if (data.file == nullptr) {
    add_rows(data, &rows);
  } else {
    RowCopy room = make_room_for_rows(budget, data, rows_of_chunk(data, 0));
    for (std::uint64_t number = 0; number < chunk_count(data); ++number) {
      load_chunk(data, number, room);
      add_rows(piece_of(room.view, 0, rows_of_chunk(data, number)), &rows);
    }
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

TEST(ChosenRows, are_those_rows_by_their_positions) {
  Random random(940);
  constexpr std::uint64_t kRows = 517;
  for (const ScalarType scalar : {ScalarType::kFloat32, ScalarType::kFloat64}) {
    const Points points = Points(3, make_values(Shape::kUniform, random, kRows, 3), scalar)
                              .with_ids(shuffled_ids(kRows))
                              .with_scores(std::vector<double>(kRows, 3));
    MemoryFile file;
    StoredPoints stored(points, 4);
    const Dataset in_memory = stored.in_chunks(), in_file = stored.in_file(file);
    for (const std::uint64_t count : {0u, 1u, 16u, 17u, 300u, 517u}) {
      std::vector<std::uint32_t> chosen(kRows);
      std::iota(chosen.begin(), chosen.end(), 0u);
      for (std::uint64_t i = kRows; i > 1; --i) std::swap(chosen[i - 1], chosen[random.index(i)]);
      chosen.resize(count);
      std::vector<NamedRow> expected;
      for (const std::uint32_t row : chosen) {
        expected.push_back({row, {}});
        for (std::uint32_t d = 0; d < 3; ++d)
          expected.back().values.push_back(coordinate(in_memory, row, d));
      }
      std::sort(expected.begin(), expected.end());
      for (const Dataset* const data : {&in_memory, &in_file})
        for (const std::uint64_t memory : {std::uint64_t{0}, ~std::uint64_t{0}}) {
          MemoryBudget budget(0);
          ChosenRows made(budget, *data, chosen.data(), count, memory, file.functions());
          const ChosenRows moved = [&] {
            while (made.step()) {
            }
            return std::move(made);
          }();
          const Dataset view = moved.view();
          EXPECT_EQ(view.rows, count);
          EXPECT_FALSE(has_scores(view));
          EXPECT_EQ(rows_of(view), expected);
          const bool stays_in_file = data == &in_file && memory == 0 && count > 16;
          EXPECT_EQ(view.file != nullptr, stays_in_file);
          if (stays_in_file) {
            EXPECT_LT(budget.used(), 100u);
          }
        }
    }
  }
}

TEST(ChosenRows, of_a_file_that_fails) {
  const Points points(1, std::vector<double>(100, 1));
  std::vector<std::uint32_t> all(100);
  std::iota(all.begin(), all.end(), 0u);
  for (const std::uint64_t calls : {0, 2, 4}) {
    MemoryFile file;
    StoredPoints stored(points, 4);
    const Dataset data = stored.in_file(file);
    file.fail_after(calls);
    MemoryBudget budget(0);
    ChosenRows rows(budget, data, all.data(), 100, 0, file.functions());
    EXPECT_THROW(while (rows.step()){}, RowFileFailed);
  }
}

}  // namespace
}  // namespace gpujoin::test
