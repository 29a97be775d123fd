#include "engine/request/check_batch.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/cluster.h"

namespace gpujoin {
namespace {

/// A batch of two rows and three pairs, all of which is right.
struct CheckedBatch : testing::Test {
  std::vector<std::uint32_t> rows = {1, 2}, neighbors = {0, 3, 1};
  std::vector<std::uint64_t> offsets = {7, 9, 10}, counts = {2, 5};
  std::vector<double> distances = {1, 2, 3};
  std::vector<FoldWord> sums = std::vector<FoldWord>(2);
  std::vector<std::int64_t> left_ids = {10, 11, 12}, right_ids = {20, 21, 22, 23};
  ResultBatch batch = {};

  CheckedBatch() {
    batch.row_count = 2;
    batch.pair_count = 3;
    batch.rows = rows.data();
    batch.offsets = offsets.data();
    batch.neighbors = neighbors.data();
    batch.distances = distances.data();
    batch.counts = counts.data();
    batch.sums = sums.data();
    batch.set_ids(left_ids.data(), left_ids.size(), right_ids.data(), right_ids.size());
  }
  bool is_right(Output::Kind output, std::uint64_t groups = 0) const {
    return problem_of_batch(batch, output, groups) == nullptr;
  }
};

TEST_F(CheckedBatch, right_batches_have_no_problem) {
  for (const Output::Kind output :
       {Output::kPairs, Output::kPairsWithDistances, Output::kCountPerRow, Output::kSums,
        Output::kTotal, Output::kTopPairs, Output::kNearest, Output::kClusters})
    EXPECT_TRUE(is_right(output)) << output;
}

TEST_F(CheckedBatch, positions_beyond_the_ids_are_a_problem) {
  rows[1] = 3;
  EXPECT_FALSE(is_right(Output::kPairs));
  EXPECT_FALSE(is_right(Output::kCountPerRow));
  EXPECT_TRUE(is_right(Output::kTotal));
  batch.transposed = true;  // rows are right points, and neighbor 3 no left one
  EXPECT_FALSE(is_right(Output::kPairs));
  neighbors[1] = 2;
  EXPECT_TRUE(is_right(Output::kPairs));
  batch.transposed = false;
  rows[1] = 0;
  neighbors[2] = ~0u;
  EXPECT_FALSE(is_right(Output::kNearest));
  EXPECT_TRUE(is_right(Output::kCountPerRow));
}

TEST_F(CheckedBatch, offsets_ascend) {
  offsets[1] = 11;
  EXPECT_FALSE(is_right(Output::kPairs));
  offsets[1] = 6;
  EXPECT_FALSE(is_right(Output::kPairs));
}

TEST_F(CheckedBatch, arrays_that_are_missing_are_a_problem) {
  const ResultBatch whole = batch;
  batch.left_ids = nullptr;
  EXPECT_FALSE(is_right(Output::kCountPerRow));
  EXPECT_TRUE(is_right(Output::kCountPerRow, 3));
  EXPECT_FALSE(is_right(Output::kCountPerRow, 2));
  batch = whole;
  batch.right_ids = nullptr;
  EXPECT_TRUE(is_right(Output::kSums));
  EXPECT_FALSE(is_right(Output::kPairs));
  batch = whole;
  batch.counts = nullptr;
  EXPECT_FALSE(is_right(Output::kClusters));
  batch = whole;
  batch.sums = nullptr;
  EXPECT_FALSE(is_right(Output::kSums));
  batch = whole;
  batch.distances = nullptr;
  EXPECT_TRUE(is_right(Output::kPairs));
  EXPECT_FALSE(is_right(Output::kPairsWithDistances));
}

TEST_F(CheckedBatch, clusters_have_a_known_role) {
  counts = {pack_cluster({ClusterRole::kCore, 4}), 3};
  EXPECT_FALSE(is_right(Output::kClusters));
  EXPECT_TRUE(is_right(Output::kCountPerRow));
}

TEST(CheckedIds, lie_in_the_range_of_the_side) {
  const std::vector<std::int64_t> ids = {0, 5, 9};
  EXPECT_TRUE(are_in_range(ids.data(), ids.size(), {10, 0}));
  EXPECT_FALSE(are_in_range(ids.data(), ids.size(), {9, 0}));
  EXPECT_TRUE(are_in_range(ids.data(), ids.size(), {}));
  const std::int64_t below = -1;
  EXPECT_FALSE(are_in_range(&below, 1, {10, 0}));
  EXPECT_TRUE(are_in_range(&below, 1, {}));
  const std::vector<std::int64_t> ctids = {0, 1,
                                           (2 << 16) + 291};  // a slot without a row, and two rows
  EXPECT_TRUE(are_in_range(ctids.data(), ctids.size(), {3 << 16, 291}));
  EXPECT_FALSE(are_in_range(ctids.data(), ctids.size(), {2 << 16, 291}));
  EXPECT_FALSE(are_in_range(ctids.data(), ctids.size(), {3 << 16, 290}));
  EXPECT_TRUE(are_in_range(nullptr, 0, {1, 1}));
}

}  // namespace
}  // namespace gpujoin
