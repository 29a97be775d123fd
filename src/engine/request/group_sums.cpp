#include "engine/request/group_sums.h"

#include <algorithm>

namespace gpujoin {
namespace {

constexpr std::uint64_t kMostPairs = (std::uint64_t{1} << 32) - 1;
constexpr std::uint64_t kRowsAtOnce = 256;

/// Adds one measure of some rows to that of their groups.
template <Fold fold>
void merge(std::uint64_t rows, const std::uint32_t* groups, std::uint64_t width,
           const FoldWord* from, FoldWord* to) {
  for (std::uint64_t i = 0; i < rows; ++i)
    merge_fold(fold, to + groups[i] * width, from + i * width);
}

void merge(Fold fold, std::uint64_t rows, const std::uint32_t* groups, std::uint64_t width,
           const FoldWord* from, FoldWord* to) {
  switch (fold) {
    case Fold::kSum:
    case Fold::kCountOf:
      return merge<Fold::kSum>(rows, groups, width, from, to);
    case Fold::kLeast:
    case Fold::kLeastOf:
      return merge<Fold::kLeast>(rows, groups, width, from, to);
    case Fold::kMost:
    case Fold::kMostOf:
      return merge<Fold::kMost>(rows, groups, width, from, to);
    case Fold::kSumOf:
    case Fold::kSquaresOf:
      return merge<Fold::kSumOf>(rows, groups, width, from, to);
  }
}

/// The groups of rows of a batch, which lie all over the left side.
void find_groups(const ResultBatch& batch, std::uint64_t first, std::uint64_t rows,
                 const GroupSums& of, std::uint32_t* groups) {
  if (of.group_of_row == nullptr) {
    std::fill_n(groups, rows, 0u);
    return;
  }
  std::int64_t ids[kRowsAtOnce];
  for (std::uint64_t i = 0; i < rows; ++i) {
    ids[i] = batch.left_ids[batch.rows[first + i]];
    __builtin_prefetch(of.group_of_row + ids[i]);
  }
  const auto last = static_cast<std::uint32_t>(of.groups - 1);
  for (std::uint64_t i = 0; i < rows; ++i) groups[i] = std::min(of.group_of_row[ids[i]], last);
}

}  // namespace

void clear_groups(GroupSums* to) {
  to->pairs = 0;
  std::fill_n(to->counts, to->groups, 0);
  if (to->sums == nullptr) return;
  const std::uint32_t width = row_words(*to->sums);
  for (std::uint64_t group = 0; group < to->groups; ++group)
    clear_row(*to->sums, to->words + group * width);
}

std::uint64_t add_rows(const ResultBatch& batch, std::uint64_t first, GroupSums* to) {
  std::uint32_t groups[kRowsAtOnce];
  const std::uint64_t width = to->sums != nullptr ? row_words(*to->sums) : 0;
  while (first < batch.row_count) {
    const std::uint64_t most = std::min(kRowsAtOnce, batch.row_count - first);
    std::uint64_t rows = 0;
    for (; rows < most; ++rows) {
      const std::uint64_t pairs = batch.counts[first + rows];
      if (to->pairs > 0 && (to->pairs >= kMostPairs || pairs > kMostPairs - to->pairs)) break;
      to->pairs += pairs;
    }
    find_groups(batch, first, rows, *to, groups);
    for (std::uint64_t i = 0; i < rows; ++i) to->counts[groups[i]] += batch.counts[first + i];
    if (to->sums != nullptr) {
      const FoldWord* const words = batch.sums + first * width;
      merge(Fold::kSum, rows, groups, width, words, to->words);  // values out of range
      std::uint64_t place = 1;
      for (std::uint32_t m = 0; m < to->sums->measures; ++m) {
        const Fold fold = to->sums->measure[m].fold;
        merge(fold, rows, groups, width, words + place, to->words + place);
        place += words_of(fold);
      }
    }
    first += rows;
    if (rows < most) break;
  }
  return first;
}

}  // namespace gpujoin
