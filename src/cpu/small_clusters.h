// Clusters of so few points that comparing all pairs takes less time than an index, or a thread.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>

#include "core/cluster.h"
#include "core/nearest.h"
#include "engine/joins/join.h"
#include "engine/request/request.h"

namespace gpujoin::cpu {

/// Whether a request for Output::kClusters has so few points.
bool are_small_clusters(const JoinRequest& request);

/// Works within next_batch(), for a fraction of a millisecond.
class SmallClusters final : public Join {
 public:
  static constexpr std::uint32_t kMostRows = 256;

  /// The points of the request, which are_small_clusters(), outlive it.
  explicit SmallClusters(const JoinRequest& request);

  Status next_batch(ResultBatch* batch) override;
  void stats(JoinStats* stats) const override;

 private:
  double raw(std::uint32_t a, std::uint32_t b) const;
  void find_neighbors();
  void unite_cores();
  std::uint32_t nearest_core(std::uint32_t row) const;
  void number_clusters();

  const JoinRequest request_;
  const std::uint32_t rows_;
  bool done_ = false;
  std::array<std::bitset<kMostRows>, kMostRows> near_;  ///< each row's neighbours, itself included
  std::bitset<kMostRows> cores_;
  std::array<std::uint32_t, kMostRows> links_;      ///< of DisjointSets
  std::array<std::uint32_t, kMostRows> positions_;  ///< 0, 1, ...
  std::array<std::int64_t, kMostRows> ids_;
  std::array<std::uint64_t, kMostRows> words_;  ///< of pack_cluster()
  JoinStats stats_{};
};

}  // namespace gpujoin::cpu
