// The clusters of a join in the making (Output::kClusters): which points are core points, which
// clusters have become one, which core point a border point follows. Workers share it, and no pair
// is kept. What the pairs are is for the walks: cluster_cells and cluster_tiles.
#pragma once

#include <cstdint>

#include "core/border_rule.h"
#include "core/cluster.h"
#include "core/disjoint_sets.h"
#include "core/nearest.h"
#include "cpu/walk/join_plan.h"
#include "cpu/walk/walk_tools.h"
#include "engine/request/buffer.h"

namespace gpujoin::cpu {

/// Whether a core point comes before another one as the one that a border point follows.
inline bool is_better_core(const JoinPlan& plan, const Neighbor& a, const Neighbor& b) {
  return is_followed_before(plan.borders, plan.metric, a, b, plan.left->ids.data());
}

/// By position, finite points or not.
class ClusterTable {
 public:
  /// No core points, each point its own root. Throws MemoryLimitExceeded or std::bad_alloc.
  ClusterTable(MemoryBudget& budget, std::uint64_t points);

  // First core points are marked; each point by one worker.

  void mark_core(std::uint32_t point) { cores_[point] = true; }
  bool is_core(std::uint32_t point) const { return cores_[point]; }

  // Then core points are united, by all workers, and marks are only read.

  /// The root of a core point, the same for all of a cluster once all pairs are united.
  std::uint32_t root(std::uint32_t point) const { return sets_.root(point); }
  std::uint32_t unite(std::uint32_t a, std::uint32_t b) { return sets_.unite(a, b); }
  /// Makes a point that is no core point follow one, for good: a border point.
  void follow(std::uint32_t point, std::uint32_t core) { links_[point] = core; }

  /// Numbers the clusters and puts a row for each point into the queue. Throws what Buffer throws,
  /// and Stopped.
  void write(const JoinPlan& plan, const WalkTools& tools);

 private:
  /// After all points are united and follow: what each is.
  ClusterRole role_of(std::uint32_t point) const {
    if (cores_[point]) return ClusterRole::kCore;
    return links_[point] == point ? ClusterRole::kNoise : ClusterRole::kBorder;
  }

  Buffer<std::uint32_t> links_;
  DisjointSets sets_;
  Buffer<bool> cores_;
};

}  // namespace gpujoin::cpu
