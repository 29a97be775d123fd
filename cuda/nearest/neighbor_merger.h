// Keeps the neighbours of a slice of left points during a search over tiles. The definition decides
// candidates, which are then merged; the neighbours found so far give thresholds for the next ones.
#pragma once

#include <cstdint>

#include "cuda/device/memory.h"
#include "cuda/nearest/nearest_side.h"
#include "cuda/nearest/neighbor_search.h"
#include "cuda/nearest/screened_kernels.h"

namespace gpujoin::cuda {

/// Works in the order of the stream, asynchronously. Sides are rounded alike and outlive it. Throws
/// CudaError or MemoryLimitExceeded.
class NeighborMerger {
 public:
  NeighborMerger(const NeighborQuestion& question, const NearestSide& left,
                 const NearestSide& right, MemoryBudget& budget, cudaStream_t stream);

  /// Begins a slice and merges the first right points by position.
  void start(const NeighborSlice& slice, std::uint32_t first_points);
  /// Merges candidates in the form that Merge describes; `expected` is about how many each left
  /// point has.
  void add(const std::uint64_t* candidates, const std::uint32_t* begins, const std::uint32_t* ends,
           std::uint64_t expected);
  /// Sets the thresholds of the slice's left points by position, but of those that pass nothing.
  void find_thresholds(float* reject) const;
  /// Ends the slice.
  void finish() const { launch_finish(merge(), stream_); }

  const RoundedPoints& left() const { return left_.rounded(); }
  const RoundedPoints& right() const { return right_.rounded(); }
  std::uint32_t padded_dims() const { return right_.rounding().padded_dims; }
  const NeighborSlice& slice() const { return slice_; }
  const SearchReport* report() const { return report_.data(); }
  /// NeighborSearch::describe() of a search that has compared so many pairs.
  void describe(std::uint64_t candidates, JoinStats* stats) const;

 private:
  Merge merge() const;
  void share_and_launch(Merge merge, std::uint64_t candidates);

  const NeighborQuestion question_;
  MemoryBudget& budget_;
  const cudaStream_t stream_;
  const NearestSide &left_, &right_;
  DeviceBuffer<SearchReport> report_;
  DeviceBuffer<std::uint32_t> part_counts_, part_positions_;
  DeviceBuffer<double> part_raws_;
  NeighborSlice slice_{};
};

}  // namespace gpujoin::cuda
