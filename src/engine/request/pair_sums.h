// What Output::kSums asks for: numbers of rows, values of pairs, and what is wanted of them for
// each left row.
#pragma once

#include <cstdint>

#include "core/pair_value.h"

namespace gpujoin {

inline constexpr std::uint32_t kMostMeasures = 40;
inline constexpr std::uint32_t kMostPrograms = 8;
inline constexpr std::uint32_t kMostSumWords = 48;

/// What is wanted of a column of integers, or of a program's values.
struct Measure {
  Fold fold;
  std::uint32_t number;  ///< of the column, or of the program
};

/// Owned by the caller, unchanged while the join is open. Columns are by row, as the datasets are;
/// of a self-join left and right columns are of the same rows.
///
/// The result for a left row is a row of words: how many values of its pairs were out of range
/// (then the sums are of the others), and the words of each measure, in order.
struct PairSums {
  std::uint32_t left_columns, right_columns, integer_columns;
  const double* const* left;            ///< [left_columns][left rows], finite; NaN: NULL
  const double* const* right;           ///< [right_columns][right rows], likewise
  const std::int64_t* const* integers;  ///< [integer_columns][right rows]
  std::uint32_t programs;
  ValueProgram program[kMostPrograms];
  std::uint32_t measures;
  Measure measure[kMostMeasures];
};

/// Words of a row of the result.
inline std::uint32_t row_words(const PairSums& sums) {
  std::uint32_t words = 1;
  for (std::uint32_t i = 0; i < sums.measures; ++i) words += words_of(sums.measure[i].fold);
  return words;
}

/// Sets the words of a row to those of no pairs.
GPUJOIN_HD inline void clear_row(const PairSums& sums, FoldWord* words) {
  words++->number = 0;
  for (std::uint32_t i = 0; i < sums.measures; words += words_of(sums.measure[i++].fold))
    clear_fold(sums.measure[i].fold, words);
}

/// Adds the words of other pairs to those of a row.
GPUJOIN_HD inline void merge_rows(const PairSums& sums, FoldWord* words, const FoldWord* others) {
  words++->number += others++->number;
  for (std::uint32_t i = 0; i < sums.measures; ++i) {
    const Fold fold = sums.measure[i].fold;
    merge_fold(fold, words, others);
    words += words_of(fold);
    others += words_of(fold);
  }
}

/// Whether a program needs the distance of its pairs.
inline bool wants_distance(const PairSums& sums) {
  for (std::uint32_t p = 0; p < sums.programs; ++p)
    for (std::uint32_t i = 0; i < sums.program[p].count; ++i)
      if (sums.program[p].steps[i] == ValueStep::kDistance) return true;
  return false;
}

/// Whether programs are well formed, and refer to columns and programs that there are.
bool is_well_formed(const PairSums& sums);

}  // namespace gpujoin
