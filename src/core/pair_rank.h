// Where a pair stands among the best: by its score, then by its points' ids, so that ties have one
// order.
#pragma once

#include <cstdint>

#include "core/portability.h"

namespace gpujoin {

struct PairRank {
  std::uint64_t key;  ///< score_key()
  std::int64_t id1;
  std::int64_t id2;
};

/// Behind every pair whose key is not below `key`.
GPUJOIN_HD inline PairRank last_rank(std::uint64_t key) { return {key, INT64_MAX, INT64_MAX}; }

GPUJOIN_HD inline bool comes_before(const PairRank& a, const PairRank& b) {
  if (a.key != b.key) return a.key > b.key;
  return a.id1 != b.id1 ? a.id1 < b.id1 : a.id2 < b.id2;
}

/// The last of all ranks that come before `rank`: a pair that is not behind it comes before `rank`.
/// Keys of numbers are below UINT64_MAX.
GPUJOIN_HD inline PairRank rank_before(const PairRank& rank) {
  if (rank.id2 > INT64_MIN) return {rank.key, rank.id1, rank.id2 - 1};
  if (rank.id1 > INT64_MIN) return {rank.key, rank.id1 - 1, INT64_MAX};
  return last_rank(rank.key + 1);
}

/// The rank of a pair; `smaller_first`: the smaller id is the first one's.
GPUJOIN_HD inline PairRank rank_of_pair(std::uint64_t key, std::int64_t id1, std::int64_t id2,
                                        bool smaller_first) {
  return smaller_first && id2 < id1 ? PairRank{key, id2, id1} : PairRank{key, id1, id2};
}

}  // namespace gpujoin
