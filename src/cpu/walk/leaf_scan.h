// One point against the leaves of a k-d tree, whatever the metric: which bound a search goes by,
// and the raw distances that the definition gives.
#pragma once

#include <cstdint>

#include "core/nearest.h"
#include "cpu/index/kd_tree.h"
#include "cpu/walk/walk_tools.h"
#include "engine/request/request.h"

namespace gpujoin::cpu {

/// Points and their tree, or by cosine distance the tree of their directions.
struct TreePoints {
  const KdTree* tree;
  const Dataset* points;
  Metric metric;
  Metric indexed_metric;  ///< of the tree: L2 for cosine
  bool any_direction;     ///< a vector is extreme, see core/cosine.h: all are looked at
  bool screened;          ///< the kernel's sums are in another order
  ScanKernel kernel;

  bool by_directions() const { return metric == Metric::kCosine; }
  /// A lower bound on the distance of points whose raw distance in the tree is this or more.
  double least_distance(double tree_raw) const {
    return by_directions() ? 0 : distance_from_raw(metric, tree_raw);
  }
  /// A bound on the raw distances, as the tree has them, of points up to this raw distance.
  double most_tree_raw(double raw) const;
};

class LeafScan {
 public:
  /// Throws MemoryLimitExceeded or std::bad_alloc.
  LeafScan(const TreePoints& points, const WalkTools& tools);

  /// Takes the point at a position.
  void load(std::uint32_t position);
  /// Beyond this raw distance no point is looked for.
  void set_bound(double raw);
  double most_tree_raw() const { return most_tree_raw_; }
  /// Compares the point with those of a leaf: how many are within the bound, itself among them.
  /// Throws Stopped.
  std::size_t look_at(Window leaf);
  std::uint32_t position(std::size_t i) const { return positions_[i]; }
  double raw(std::size_t i) const { return raws_[i]; }

  /// A lower bound on the raw distances, as the tree has them, of the points of a node.
  template <Metric M>
  double raw_of_node(std::uint32_t node) const {
    const KdTree& tree = *points_.tree;
    return raw_distance_of_box<M>(query_.data(), tree.low(node), tree.high(node), tree.dims);
  }

 private:
  template <class T>
  void load_from_tile();
  double raw_of(std::uint32_t other) const;

  const TreePoints& points_;
  const WorkerPool& pool_;
  Buffer<double> query_;  ///< [dims] as the tree has it
  std::uint32_t position_ = 0;
  double most_raw_ = 0, most_tree_raw_ = 0;
  Scan scan_{};
  Buffer<std::uint32_t> positions_;  ///< of points that are within
  Buffer<double> raws_;
};

}  // namespace gpujoin::cpu
