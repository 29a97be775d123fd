// One worker's search for the first edge that leads out of each component, in a round of [Boruvka].
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/walk/core_walker.h"
#include "cpu/walk/leaf_scan.h"
#include "cpu/walk/tree_table.h"

namespace gpujoin::cpu {

/// What is known of the edges of each point, round after round.
struct PointEdges {
  PointEdges(MemoryBudget& budget, std::uint64_t points)
      : least(budget, points), settled(budget, points) {}

  Buffer<double> least;          ///< no edge that leads out of its component is shorter
  Buffer<std::uint8_t> settled;  ///< this round: the first edge is offered
};

/// Each round [dual-tree-EMST] asks the lists of all points first, then the tree for those points
/// whose lists do not tell. In the tree a node is left out where all its points are in the
/// component, or where no edge to one of them comes before the first that is known to lead out: by
/// the distance of its box, its smallest core distance, and of edges of one distance by its
/// smallest rank. So points of one place, all of whose edges have one distance, take no more time
/// than others.
class EdgeWalker {
 public:
  /// Throws MemoryLimitExceeded or std::bad_alloc.
  EdgeWalker(const TreePoints& points, const NearLists& lists, TreeTable& table, PointEdges& edges,
             const WalkTools& tools, WalkProgress& progress);

  /// Looks at the lists of the points at some positions.
  void walk_lists(std::uint32_t begin, std::uint32_t end);
  /// Looks for the points of some leaves, after all lists.
  void walk_leaves(std::uint32_t begin, std::uint32_t end);

  WalkProgress& progress() { return progress_; }

 private:
  struct Visit {
    std::uint32_t node;
    TreeEdge least;  ///< no edge to a point of the node comes before
  };

  void look_at_list(std::uint32_t point);
  bool is_open(std::uint32_t point);
  void walk_leaf(std::uint32_t leaf);
  bool may_leave(std::uint32_t leaf);
  template <Metric M>
  bool may_leave(std::uint32_t leaf);
  void find(std::uint32_t point);
  template <Metric M>
  void descend();
  template <Metric M>
  bool may_hold(std::uint32_t node, Visit* visit) const;
  void look_at(Window leaf);
  void set_bound(const TreeEdge& bound);
  void follow_others();

  const TreePoints& points_;
  const WorkerPool& pool_;
  const NearLists& lists_;
  TreeTable& table_;
  PointEdges& edges_;
  WalkProgress& progress_;
  LeafScan scan_;
  std::vector<Visit> visits_;
  std::vector<std::uint32_t> nodes_;

  // The point at hand.
  std::uint32_t component_ = 0, rank_ = 0;
  double core_ = 0;
  TreeEdge bound_{};  ///< the first edge out of its component, as far as it knows
};

}  // namespace gpujoin::cpu
