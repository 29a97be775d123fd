// One worker's search for core distances, and for the nearest points of each point, which most
// edges of a spanning tree lead to.
#pragma once

#include <cstdint>
#include <vector>

#include "core/nearest.h"
#include "cpu/walk/leaf_scan.h"
#include "cpu/walk/tree_table.h"

namespace gpujoin::cpu {

/// The nearest other points of each point. What is not listed is no nearer than the last that is.
struct NearLists {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  std::uint32_t length = 0;         ///< of a list; 0: there are none
  Buffer<std::uint32_t> positions;  ///< [points][length], kNone at the end of a short list, and
  Buffer<double> distances;         ///< then infinity

  /// No point that is not listed is nearer.
  double beyond(std::uint32_t point) const {
    return length > 0 ? distances[std::uint64_t{point} * length + length - 1] : 0;
  }
};

class CoreWalker {
 public:
  /// `neighbors`: the core distance is that of so many-th nearest other point; of 0 it is 0. Memory
  /// is taken here. Throws MemoryLimitExceeded or std::bad_alloc.
  CoreWalker(const TreePoints& points, std::uint64_t neighbors, TreeTable& table, NearLists& lists,
             const WalkTools& tools, WalkProgress& progress);

  /// The points at some positions.
  void walk(std::uint32_t begin, std::uint32_t end);

  WalkProgress& progress() { return progress_; }

 private:
  struct Visit {
    std::uint32_t node;
    double raw;
  };

  void find(std::uint32_t position);
  template <Metric M>
  void descend(std::uint32_t position);
  void look_at(Window leaf, std::uint32_t position);
  bool is_full() const { return size_ == found_.size(); }
  bool may_hold(double tree_raw) const;
  void write(std::uint32_t position);

  const TreePoints& points_;
  const std::uint64_t neighbors_;
  TreeTable& table_;
  NearLists& lists_;
  WalkProgress& progress_;
  LeafScan scan_;
  Buffer<Neighbor> found_;  ///< a heap, the farthest first
  std::uint64_t size_ = 0;
  std::vector<Visit> visits_;
};

}  // namespace gpujoin::cpu
