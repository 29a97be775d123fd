// Sums of left rows by their groups, against the same sums row by row.
#include "engine/request/group_sums.h"

#include <gtest/gtest.h>

#include <vector>

#include "points.h"

namespace gpujoin::test {
namespace {

PairSums every_kind() {
  PairSums sums{};
  sums.integer_columns = 1;
  sums.programs = 1;
  for (const Fold fold : {Fold::kSum, Fold::kLeast, Fold::kMost, Fold::kSumOf, Fold::kSquaresOf,
                          Fold::kLeastOf, Fold::kMostOf, Fold::kCountOf})
    sums.measure[sums.measures++] = {fold, 0};
  return sums;
}

/// A batch of rows in another order than their ids', a quarter of which have no pairs.
struct Rows {
  std::vector<std::uint32_t> rows, groups;
  std::vector<std::int64_t> ids;
  std::vector<std::uint64_t> counts;
  std::vector<FoldWord> words;
  ResultBatch batch{};

  Rows(const PairSums& sums, std::uint64_t count, std::uint64_t group_count,
       std::uint64_t most_pairs) {
    Random random(11);
    const std::uint32_t width = row_words(sums);
    words.resize(count * width);
    for (std::uint64_t i = 0; i < count; ++i) {
      rows.push_back(static_cast<std::uint32_t>(count - 1 - i));
      ids.push_back(static_cast<std::int64_t>(i * 7 % count));
      groups.push_back(static_cast<std::uint32_t>(random.index(group_count)));
      counts.push_back(random.index(4) == 0 ? 0 : 1 + random.index(most_pairs));
      FoldWord* const row = words.data() + i * width;
      clear_row(sums, row);
      if (counts[i] == 0) continue;
      row[0].number = random.index(2);
      FoldWord* to = row + 1;
      for (std::uint32_t m = 0; m < sums.measures; to += words_of(sums.measure[m++].fold)) {
        const Fold fold = sums.measure[m].fold;
        if (words_of(fold) == 2) {
          to[0].real = random.between(-1e9, 1e9);
          to[1].real = random.between(-1e-9, 1e-9);
        } else {
          to[0].integer = static_cast<std::int64_t>(random.index(1000000)) - 500000;
        }
      }
    }
    batch.row_count = count;
    batch.rows = rows.data();
    batch.counts = counts.data();
    batch.sums = words.data();
    batch.left_ids = ids.data();
  }

  std::uint32_t group_of(std::uint64_t i) const {
    return groups[static_cast<std::uint64_t>(ids[rows[i]])];
  }
};

/// Adds all rows, and checks the groups at each end against a loop. How often they were full.
int expect_groups(const PairSums* sums, const Rows& rows, std::uint64_t groups, bool one) {
  const std::uint32_t width = sums != nullptr ? row_words(*sums) : 0;
  std::vector<std::uint64_t> counts(groups), expected_counts(groups);
  std::vector<FoldWord> words(groups * width), expected(groups * width);
  GroupSums found{sums, one ? nullptr : rows.groups.data(), groups, 0, counts.data(), words.data()};
  int full = -1;
  for (std::uint64_t row = 0, end; row < rows.batch.row_count; row = end, ++full) {
    clear_groups(&found);
    end = add_rows(rows.batch, row, &found);
    EXPECT_GT(end, row);
    std::fill(expected_counts.begin(), expected_counts.end(), 0);
    for (std::uint64_t g = 0; sums != nullptr && g < groups; ++g)
      clear_row(*sums, expected.data() + g * width);
    std::uint64_t pairs = 0;
    for (std::uint64_t i = row; i < end; ++i) {
      const std::uint64_t group = one ? 0 : rows.group_of(i);
      expected_counts[group] += rows.counts[i];
      pairs += rows.counts[i];
      if (sums != nullptr)
        merge_rows(*sums, expected.data() + group * width, rows.words.data() + i * width);
    }
    EXPECT_EQ(counts, expected_counts);
    EXPECT_EQ(found.pairs, pairs);
    EXPECT_LT(pairs, std::uint64_t{1} << 32);
    for (std::uint64_t w = 0; w < words.size(); ++w) EXPECT_EQ(words[w].number, expected[w].number);
  }
  return full;
}

TEST(GroupSums, are_those_of_the_rows) {
  const PairSums sums = every_kind();
  for (const std::uint64_t count : {1, 255, 256, 257, 5000})
    for (const std::uint64_t groups : {1, 2, 100}) {
      const Rows rows(sums, count, groups, 1000);
      EXPECT_EQ(expect_groups(&sums, rows, groups, groups == 1), 0);
      EXPECT_EQ(expect_groups(&sums, rows, groups, false), 0);
      EXPECT_EQ(expect_groups(nullptr, rows, groups, false), 0);
    }
}

TEST(GroupSums, are_full_before_a_sum_of_integers_may_overflow) {
  const PairSums sums = every_kind();
  for (const std::uint64_t most : {std::uint64_t{1} << 26, (std::uint64_t{1} << 32) - 1}) {
    const Rows rows(sums, 3000, 10, most);
    EXPECT_GT(expect_groups(&sums, rows, 10, false), 10);
  }
}

TEST(GroupSums, negative_zeros_add_up_to_one) {
  FoldWord words[2], others[2];
  for (FoldWord* const sum : {words, others}) clear_fold(Fold::kSumOf, sum);
  const auto rounded = [&] { return DoubleSum{words[0].real, words[1].real}.rounded(); };
  fold_value(Fold::kSumOf, words, -0.0);
  fold_value(Fold::kSumOf, words, -0.0);
  merge_fold(Fold::kSumOf, words, others);  // of no pairs
  EXPECT_TRUE(rounded() == 0 && std::signbit(rounded()));
  fold_value(Fold::kSumOf, others, 0);
  merge_fold(Fold::kSumOf, words, others);
  EXPECT_TRUE(rounded() == 0 && !std::signbit(rounded()));
}

}  // namespace
}  // namespace gpujoin::test
