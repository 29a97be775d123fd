// PairCursor on batches made by hand: compressed rows, mirrored entries, and the smaller id first.

#include "engine/request/pair_cursor.h"

#include <gtest/gtest.h>

#include <vector>

#include "oracle.h"

namespace gpujoin::test {
namespace {

/// A batch with arrays of its own. left_ids are 100 + position, right_ids 200 + position; without
/// right_ids both sides are one.
struct HandMade {
  std::vector<std::uint32_t> rows;
  std::vector<std::uint64_t> offsets;
  std::vector<std::uint32_t> neighbors;
  std::vector<double> distances = {};
  bool mirrored = false;
  std::vector<std::int64_t> left_ids = {100, 101, 102, 103};
  std::vector<std::int64_t> right_ids = {200, 201, 202, 203};

  ResultBatch batch() const {
    ResultBatch batch{};
    batch.row_count = rows.size();
    batch.rows = rows.data();
    batch.offsets = offsets.data();
    batch.neighbors = neighbors.data();
    batch.distances = distances.empty() ? nullptr : distances.data();
    batch.left_ids = left_ids.data();
    batch.right_ids = right_ids.empty() ? batch.left_ids : right_ids.data();
    batch.mirrored = mirrored;
    return batch;
  }
};

/// What the cursor gives, in its order.
std::vector<FoundPair> walk(const HandMade& made, bool orders_pairs = false) {
  PairCursor cursor;
  cursor.start(made.batch(), orders_pairs);
  std::vector<FoundPair> found;
  IdPair pair{};
  while (cursor.next(&pair)) found.push_back({pair.id1, pair.id2, pair.distance});
  EXPECT_FALSE(cursor.next(&pair)) << "the end stays the end";
  return found;
}

TEST(PairCursor, gives_rows_in_order) {
  const std::vector<FoundPair> expected = {{102, 201, 0}, {102, 203, 0}, {100, 200, 0}};
  EXPECT_EQ(walk({.rows = {2, 0}, .offsets = {0, 2, 3}, .neighbors = {1, 3, 0}}), expected);
}

TEST(PairCursor, offsets_may_begin_anywhere) {
  const std::vector<FoundPair> expected = {{102, 201, 0}, {102, 203, 0}, {100, 200, 0}};
  EXPECT_EQ(walk({.rows = {2, 3, 0}, .offsets = {70, 72, 72, 73}, .neighbors = {1, 3, 0}}),
            expected);
}

TEST(PairCursor, an_empty_batch_ends_at_once) {
  EXPECT_TRUE(walk({.rows = {}, .offsets = {}, .neighbors = {}}).empty());
  EXPECT_TRUE(walk({.rows = {}, .offsets = {0}, .neighbors = {}}).empty());
}

TEST(PairCursor, rows_without_neighbors_are_passed_over) {
  const std::vector<FoundPair> expected = {{102, 202, 0}, {103, 203, 0}};
  EXPECT_EQ(walk({.rows = {0, 1, 2, 0, 3, 1, 0},
                  .offsets = {0, 0, 0, 1, 1, 2, 2, 2},
                  .neighbors = {2, 3}}),
            expected);
  EXPECT_TRUE(walk({.rows = {0, 1, 2}, .offsets = {0, 0, 0, 0}, .neighbors = {}}).empty());
}

TEST(PairCursor, mirrored_entries_come_in_both_orders) {
  const std::vector<std::int64_t> ids = {7, 8, 9};
  const std::vector<FoundPair> expected = {{7, 8, 0}, {8, 7, 0}, {7, 9, 0},
                                           {9, 7, 0}, {9, 8, 0}, {8, 9, 0}};
  EXPECT_EQ(walk({.rows = {0, 2},
                  .offsets = {0, 2, 3},
                  .neighbors = {1, 2, 1},
                  .mirrored = true,
                  .left_ids = ids,
                  .right_ids = {}}),
            expected);
}

TEST(PairCursor, a_row_with_itself_is_not_mirrored) {
  const std::vector<std::int64_t> ids = {5, 5};
  const std::vector<FoundPair> expected = {{5, 5, 0}, {5, 5, 0}, {5, 5, 0}};
  EXPECT_EQ(walk({.rows = {0},
                  .offsets = {0, 2},
                  .neighbors = {0, 1},
                  .mirrored = true,
                  .left_ids = ids,
                  .right_ids = {}}),
            expected)
      << "positions tell a row from another one with the same id";
}

TEST(PairCursor, distances_follow_their_pairs_and_mirrors) {
  const std::vector<std::int64_t> ids = {1, 2, 3};
  const std::vector<FoundPair> expected = {
      {1, 1, 0}, {1, 2, 0.5}, {2, 1, 0.5}, {2, 3, 0.25}, {3, 2, 0.25}};
  EXPECT_EQ(walk({.rows = {0, 1},
                  .offsets = {0, 2, 3},
                  .neighbors = {0, 1, 2},
                  .distances = {0, 0.5, 0.25},
                  .mirrored = true,
                  .left_ids = ids,
                  .right_ids = {}}),
            expected);
}

TEST(PairCursor, two_parts_of_a_dataset_have_no_row_in_common) {
  const std::vector<FoundPair> expected = {{100, 200, 0}, {200, 100, 0}};
  EXPECT_EQ(walk({.rows = {0}, .offsets = {0, 1}, .neighbors = {0}, .mirrored = true}), expected);
}

TEST(PairCursor, unordered_pairs_give_the_smaller_id_first) {
  const std::vector<std::int64_t> ids = {30, -10, 20, 30};
  const HandMade made = {.rows = {0, 1},
                         .offsets = {0, 3, 4},
                         .neighbors = {1, 2, 3, 2},
                         .left_ids = ids,
                         .right_ids = ids};
  const std::vector<FoundPair> unordered = {{-10, 30, 0}, {20, 30, 0}, {30, 30, 0}, {-10, 20, 0}};
  EXPECT_EQ(walk(made, true), unordered);
  const std::vector<FoundPair> as_listed = {{30, -10, 0}, {30, 20, 0}, {30, 30, 0}, {-10, 20, 0}};
  EXPECT_EQ(walk(made), as_listed);
}

TEST(PairCursor, can_be_started_again) {
  const HandMade mirrored = {.rows = {0}, .offsets = {0, 1}, .neighbors = {1}, .mirrored = true};
  PairCursor cursor;
  IdPair pair{};
  cursor.start(mirrored.batch(), false);
  ASSERT_TRUE(cursor.next(&pair));  // its mirror is due, and is forgotten
  const HandMade plain = {.rows = {3}, .offsets = {0, 1}, .neighbors = {2}};
  cursor.start(plain.batch(), false);
  ASSERT_TRUE(cursor.next(&pair));
  EXPECT_EQ(pair.id1, 103);
  EXPECT_EQ(pair.id2, 202);
  EXPECT_FALSE(cursor.next(&pair));
}

}  // namespace
}  // namespace gpujoin::test
