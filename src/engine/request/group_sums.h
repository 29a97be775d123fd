// Sums of left rows, added up by groups of these rows: what a caller wants that needs no row's own.
#pragma once

#include "engine/request/result.h"

namespace gpujoin {

/// So many groups at most are worth numbers of their own beside those of the rows.
inline constexpr std::uint64_t kMostSumGroups = 1 << 16;

/// All arrays are the caller's. Pairs of one group since the last clear_groups() are fewer than
/// 2^32, as many as a word holds sums of (Fold::kSum of integers below 2^31).
struct GroupSums {
  const PairSums* sums;               ///< null: pairs are counted alone
  const std::uint32_t* group_of_row;  ///< [left rows], by id; null: all rows are group 0
  std::uint64_t groups;               ///< group numbers above are taken for the last one
  std::uint64_t pairs;                ///< of all groups
  std::uint64_t* counts;              ///< [groups] pairs
  FoldWord* words;                    ///< [groups][row_words(*sums)]
};

/// Sets all groups to no pairs.
void clear_groups(GroupSums* to);

/// Adds rows of a batch of counts or sums from row `first` on, whose ids are positions, in their
/// order. Returns the row that finds no room, as the groups have as many pairs as they may, or the
/// end of the batch. After clear_groups() any row has room.
std::uint64_t add_rows(const ResultBatch& batch, std::uint64_t first, GroupSums* to);

}  // namespace gpujoin
