// The plain top-k join: it scores every pair of an ordinary join and keeps the best. topk_join.h
// spares most pairs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/joins/join.h"
#include "engine/joins/top_pairs.h"
#include "engine/request/memory_budget.h"

namespace gpujoin {

/// Serves a request for Output::kTopPairs by a join of its pairs, or of its pairs with distances
/// where those are the scores. Methods throw what that join's methods and Buffer throw.
class TopkScan final : public Join {
 public:
  /// Opens the join of pairs. The request is a valid one.
  TopkScan(const JoinRequest& request, const OpenJoin& pairs_join);

  Status next_batch(ResultBatch* batch) override;
  void stats(JoinStats* stats) const override;

 private:
  JoinRequest request_of_pairs() const;
  Status collect_all();
  void collect(const ResultBatch& batch);
  void collect_distances(const ResultBatch& batch);
  void offer(std::uint64_t left_row, std::uint64_t right_row);
  void add(std::uint64_t key, std::uint64_t left_row, std::uint64_t right_row);

  JoinRequest request_;
  bool by_distance_;
  bool unordered_;
  MemoryBudget budget_;
  TopPairs top_;
  std::uint64_t held_;                ///< bytes besides what the join of pairs holds
  std::unique_ptr<Join> pairs_join_;  ///< until all its pairs are collected
  JoinStats pairs_stats_{};           ///< of the join of pairs, once it is closed
  double collect_ms_ = 0;             ///< besides the time of the join of pairs
  std::optional<Interval> left_range_, right_range_;
  std::optional<TopBatches> batches_;
};

}  // namespace gpujoin
