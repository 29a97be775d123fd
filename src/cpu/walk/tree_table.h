// A smallest spanning tree in the making (Output::kSpanningTree), by rounds of [Boruvka]: which
// component each point is in, the first edge that leads out of each, the edges found. Workers share
// it. Who looks for edges is edge_walker's.
#pragma once

#include <atomic>
#include <cfloat>
#include <cstdint>

#include "core/tree_edge.h"
#include "cpu/index/kd_tree.h"
#include "cpu/index/parallel_sort.h"
#include "cpu/walk/walk_tools.h"

namespace gpujoin::cpu {

/// Points are named by position in the tree. A point without a core distance, infinite here, is in
/// no edge.
class TreeTable {
 public:
  /// Each point is its own component, and has its rank by (id, row) among all rows of the tree,
  /// finite or not. Throws what Buffer throws, and Stopped.
  TreeTable(const WalkTools& tools, const KdTree& tree);

  double core(std::uint32_t point) const { return cores_[point]; }
  bool has_core(std::uint32_t point) const { return cores_[point] <= DBL_MAX; }
  std::uint32_t rank(std::uint32_t point) const { return ranks_[point]; }
  /// [rows] ids by rank.
  const Buffer<std::int64_t>& ids() const { return ids_; }
  /// Each point's by one worker, before the first round.
  void set_core(std::uint32_t point, double core) { cores_[point] = core; }

  // A round: all workers offer edges.

  /// Begins one: what leads out of components is not known.
  void begin_round();
  const NodeFacts& facts(std::uint32_t node) const { return facts_[node]; }
  std::uint32_t component(std::uint32_t point) const { return components_[point]; }
  /// The first edge out of a component so far.
  TreeEdge first_edge(std::uint32_t component);
  /// Its distance alone, or an older one.
  double first_distance(std::uint32_t component) {
    return std::atomic_ref(first_[component].distance).load(std::memory_order_relaxed);
  }
  void offer(std::uint32_t component, const TreeEdge& edge);
  /// Unites components by their first edges. False: there were none, and the tree is complete.
  bool end_round();

  /// Sorts the edges that were found.
  void sort_edges();
  std::uint64_t edges() const { return edge_count_; }
  TreeEdge edge(std::uint64_t number) const;

 private:
  void find_facts();
  NodeFacts facts_of_leaf(std::uint32_t leaf) const;
  std::uint32_t root(std::uint32_t point);

  static constexpr std::uint32_t kLocks = 256;
  std::atomic_flag& lock_of(std::uint32_t component) { return locks_[component % kLocks]; }

  const WalkTools tools_;
  const KdTree& tree_;
  Buffer<double> cores_;
  Buffer<std::uint32_t> ranks_, by_rank_;
  Buffer<std::int64_t> ids_;
  Buffer<std::uint32_t> components_;  ///< a position among the component's; links during a merger
  Buffer<TreeEdge> first_;            ///< by component
  Buffer<NodeFacts> facts_;           ///< by node
  Buffer<SortItem> edges_;
  std::uint64_t edge_count_ = 0;
  std::atomic_flag locks_[kLocks] = {};
};

}  // namespace gpujoin::cpu
