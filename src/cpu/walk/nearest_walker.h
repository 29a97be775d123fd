// One worker's search for the nearest neighbours of points, one after another, in a k-d tree.
#pragma once

#include <cstdint>
#include <vector>

#include "core/nearest.h"
#include "cpu/index/kd_tree.h"
#include "cpu/walk/batch_writer.h"
#include "cpu/walk/lane_search.h"
#include "cpu/walk/nearest_list.h"
#include "engine/request/request.h"

namespace gpujoin::cpu {

/// What all workers of a join know. The tree is of right points, or for cosine of their directions.
struct NearestPlan {
  const RowOrder* left;
  const KdTree* right;
  const std::int64_t* least_ids;  ///< of the tree's nodes
  const Dataset* left_points;
  const Dataset* right_points;
  const Dataset* left_indexed;  ///< the points, or their directions
  Metric metric;
  Metric indexed_metric;  ///< of the tree: L2 for cosine
  bool directions;
  bool any_direction;   ///< a vector is extreme, see core/cosine.h: all are looked at
  bool screened;        ///< the kernel's sums are in another order
  bool without_itself;  ///< the row itself is no neighbour
  double most_raw;      ///< Threshold::raw of eps, of the metric
  std::uint64_t k;
  ScanKernel kernel;
  LaneKernel lanes;  ///< null: points are looked for one by one
};

/// A branch-and-bound search [KD-Tree]: nodes are visited the nearer child first, and left out
/// when no point of their box can come before the k-th neighbour so far.
class NearestWalker {
 public:
  /// Memory is taken here. Throws MemoryLimitExceeded or std::bad_alloc.
  NearestWalker(const NearestPlan& plan, MemoryBudget& budget, BatchWriter writer,
                WalkProgress& progress);

  /// Writes the neighbours of the left points at some positions.
  void walk(std::uint32_t begin, std::uint32_t end);
  void finish() { writer_.flush(); }
  WalkProgress& progress() { return progress_; }

 private:
  struct Visit {
    std::uint32_t node;
    double raw;  ///< a lower bound
  };

  void find_together(std::uint32_t begin, std::uint32_t end);
  void write_lane(std::uint32_t lane, std::uint32_t position);
  double raw_of_lane(std::uint32_t lane, std::uint32_t position) const;
  void find(std::uint32_t position, double most_raw);
  bool may_hold(const Visit& visit) const;
  void load_query(std::uint32_t position);
  template <Metric M>
  void descend();
  void look_at(Window leaf);
  void add(std::uint32_t position, double raw);
  void narrow();
  void set_bound(double raw);
  void make_room();
  std::uint64_t sort_first();
  void write(std::uint32_t position);
  void write_found(std::uint32_t position, std::uint64_t size);

  const NearestPlan& plan_;
  BatchWriter writer_;
  WalkProgress& progress_;
  std::uint64_t most_;  ///< neighbours that there can be: k, or all points
  Buffer<Neighbor> found_;
  NearestList list_;            ///< in found_; none of those left out is among the first k
  Buffer<double> query_;        ///< [dims] the point at hand, as the tree has it
  std::uint32_t position_ = 0;  ///< its own
  double most_raw_ = 0;         ///< of the join's metric: beyond it nothing is a neighbour
  double most_tree_raw_ = 0;    ///< the same, of the tree's metric
  /// A neighbour that k - 1 others come before: points as far away come before it by their ids
  /// alone. By directions, which do not tell distances so well, infinite.
  double last_raw_ = 0;
  std::int64_t last_id_ = 0;
  Scan scan_{};
  std::vector<Visit> visits_;
  LaneSearch lanes_{};
  Buffer<double> lane_queries_, lane_found_, lane_passed_;
  std::vector<LaneVisit> lane_visits_;
  Buffer<std::uint32_t> positions_;  ///< of a leaf's points that pass
  Buffer<double> raws_;
};

}  // namespace gpujoin::cpu
