// One side of a join, cut into strata: ranges of scores. Strata at both ends have the fewest rows,
// because the highest and the lowest scores matter most.
#pragma once

#include <array>
#include <cstdint>

#include "core/score.h"
#include "engine/request/buffer.h"
#include "engine/request/dataset.h"

namespace gpujoin {

inline constexpr std::uint32_t kMostStrata = 63;

/// Some strata of a side; bit i is stratum i.
using StrataSet = std::uint64_t;

inline bool contains(StrataSet set, std::uint32_t stratum) { return set >> stratum & 1; }

/// Strata in ascending order of their scores.
struct ScoreStrata {
  Buffer<std::uint8_t> of_row;                    // [rows]
  std::array<std::uint64_t, kMostStrata> rows{};  // of each stratum; may be 0
  std::array<Interval, kMostStrata> range{};      // the scores there are, where there are rows

  std::uint64_t rows_of(StrataSet set) const;
  /// The least and the highest score in strata that have rows, of which there must be some.
  Interval range_of(StrataSet set) const;
};

/// Cuts at ranks of a sample of the scores, in one pass over all of them. Throws what Buffer
/// throws.
ScoreStrata cut_by_score(MemoryBudget& budget, const Dataset& data);

}  // namespace gpujoin
