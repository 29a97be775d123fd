// The best pairs of a top-k join: collected while pairs come in any order, and handed over in the
// order of the result. Joins that find pairs use it; it finds none.
#pragma once

#include <cstdint>

#include "core/pair_rank.h"
#include "engine/request/buffer.h"
#include "engine/request/result.h"

namespace gpujoin {

/// Keeps the first k of the pairs that it is given, in memory that depends on k alone.
///
/// kThreshold collects pairs until there is no more room, then selects the first k: what comes
/// after the last of them is no longer taken. kHeap has a heap of k [thesis, section 5.4]. kSort
/// takes whatever comes, and sorts where it has no more room [thesis, section 7.1].
class TopPairs {
 public:
  /// For the request's k, or as many as its rows make. Throws what Buffer throws.
  TopPairs(MemoryBudget& budget, const JoinRequest& request, TopkMethod method);

  /// Pairs with a lower key can not be among the first any more.
  std::uint64_t least_key() const { return last_.key; }
  /// Whether k pairs have come that may be the result.
  bool full() const { return size_ >= k_; }

  void add(const PairRank& pair) {
    if (!comes_before(last_, pair)) keep(pair);
  }
  /// Adds the pairs of a batch of another top-k join of the request's pairs.
  void add(const JoinRequest& request, const ResultBatch& batch);
  /// Forgets all pairs, and from now on takes only pairs with this key or a higher one.
  void restart(std::uint64_t least_key);
  /// Leaves the first k, where there are more. What comes after them is no longer taken, except by
  /// kSort, where every pair is to be sorted.
  void select();

  /// Leaves the first k in their order. Nothing is added afterwards.
  void finish();
  std::uint64_t size() const { return size_; }
  const PairRank& operator[](std::uint64_t i) const { return pairs_[i]; }

 private:
  void keep(const PairRank& pair);
  void keep_in_heap(const PairRank& pair);

  std::uint64_t k_;
  TopkMethod method_;
  Buffer<PairRank> pairs_;
  std::uint64_t size_ = 0;
  PairRank last_;  ///< what comes after it is not among the first k
};

/// Hands finished pairs over.
class TopBatches {
 public:
  /// Throws what Buffer throws. `pairs` outlive it.
  TopBatches(MemoryBudget& budget, const JoinRequest& request, const TopPairs& pairs);

  /// Sets *batch, valid until the next call, or returns false at the end.
  bool next(ResultBatch* batch);

  std::uint64_t batches() const { return batches_; }
  std::uint64_t pairs() const { return next_; }

 private:
  const TopPairs& pairs_;
  bool lowest_first_;
  std::uint64_t next_ = 0;
  std::uint64_t batches_ = 0;
  Buffer<std::uint32_t> places_;   // 0, 1, ...: rows and neighbours
  Buffer<std::uint64_t> offsets_;  // 0, 1, ...
  Buffer<std::int64_t> ids1_, ids2_;
  Buffer<double> scores_;
};

}  // namespace gpujoin
