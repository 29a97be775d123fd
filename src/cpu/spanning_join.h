// The smallest spanning tree of points by mutual reachability distance, and the clusters that
// follow from it, on the CPU: phases and state. Rounds of [Boruvka] over a k-d tree: who looks for
// edges is edge_walker's.
#pragma once

#include <optional>

#include "cpu/index/directions.h"
#include "cpu/index/kd_tree.h"
#include "cpu/threaded_join.h"
#include "cpu/walk/edge_walker.h"
#include "engine/joins/stable_clusters.h"

namespace gpujoin::cpu {

/// Bytes that the join holds for a row, at least.
std::uint64_t spanning_row_bytes(const JoinRequest& request);

class SpanningJoin final : public ThreadedJoin {
 public:
  /// Starts the threads. The request is a valid one for Output::kSpanningTree or
  /// Output::kStableClusters, of rows in memory. Throws std::system_error or std::bad_alloc.
  explicit SpanningJoin(const JoinRequest& request);
  /// Stops the threads wherever they are and waits for them.
  ~SpanningJoin() override;

 private:
  void run() override;
  ResultBatch view(const BatchBuffer& buffer) const override;

  void index_points();
  TreePoints tree_points() const;
  void find_cores(const TreePoints& points);
  void make_lists();
  void find_edges(const TreePoints& points);
  void write_edges();
  void write_clusters();

  Directions directions_;  // by cosine distance
  Dataset indexed_ = request_.left();
  KdTree tree_;
  NearLists lists_;
  std::optional<TreeTable> table_;
  Buffer<std::int64_t> numbers_;  // of clusters, and last what noise has
};

}  // namespace gpujoin::cpu
