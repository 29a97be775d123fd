#include "engine/joins/row_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace gpujoin {
namespace {

JoinRequest request_of(const Output& output, std::uint64_t batch_pairs = 0) {
  Dataset side{};
  JoinRequest request(Sides::two(side, side), PointsWithin{Metric::kL2, 0}, output);
  request.knobs.batch_pairs = batch_pairs;
  return request;
}

Buffer<std::uint64_t> counts_of(MemoryBudget& budget, std::uint64_t rows) {
  Buffer<std::uint64_t> counts(budget, rows);
  for (std::uint64_t i = 0; i < rows; ++i) counts[i] = 10 * i;
  return counts;
}

TEST(RowBatches, hand_each_row_over_once_and_in_order) {
  MemoryBudget budget(0);
  for (const std::uint64_t batch_pairs : {0, 1, 3, 7, 100})
    for (const std::uint64_t rows : {0, 1, 7, 20}) {
      RowBatches batches(budget, request_of(Output::count_per_row(), batch_pairs), 4,
                         counts_of(budget, rows), {});
      const std::uint64_t most = batch_pairs > 0 ? std::min<std::uint64_t>(batch_pairs, 4) : 4;
      std::uint64_t next = 0;
      ResultBatch batch;
      while (batches.next(&batch)) {
        EXPECT_EQ(batch.row_count, std::min(most, rows - next));
        EXPECT_EQ(batch.sums, nullptr);
        std::uint64_t pairs = 0;
        for (std::uint64_t i = 0; i < batch.row_count; ++i, ++next) {
          EXPECT_EQ(batch.rows[i], next);
          EXPECT_EQ(batch.counts[i], 10 * next);
          pairs += batch.counts[i];
        }
        EXPECT_EQ(batch.pair_count, pairs);
      }
      EXPECT_EQ(next, rows);
      EXPECT_FALSE(batches.next(&batch));
    }
  EXPECT_EQ(budget.used(), 0u);
}

TEST(RowBatches, clusters_are_no_numbers_of_pairs) {
  MemoryBudget budget(0);
  RowBatches batches(budget, request_of(Output::clusters(3)), 100, counts_of(budget, 5), {});
  ResultBatch batch;
  ASSERT_TRUE(batches.next(&batch));
  EXPECT_EQ(batch.row_count, 5u);
  EXPECT_EQ(batch.pair_count, 0u);
}

TEST(RowBatches, sums_are_those_of_their_rows) {
  MemoryBudget budget(0);
  PairSums asked{};
  FoldWord words[5] = {};
  std::uint64_t found = 0;
  RowBatches batches(budget, request_of(Output::sums(&asked), 2), 100, counts_of(budget, 5),
                     [&](std::uint64_t first, std::uint64_t rows) {
                       EXPECT_EQ(first, found);
                       found += rows;
                       return words + first;
                     });
  ResultBatch batch;
  for (std::uint64_t row = 0; batches.next(&batch); row += batch.row_count)
    EXPECT_EQ(batch.sums, words + row);
  EXPECT_EQ(found, 5u);
}

}  // namespace
}  // namespace gpujoin
