// Clusters in an index of small cells (core/cluster.h): core points are counted, those near each
// other become one cluster by union-find in device memory, border points follow a core point. A
// slice is a part of that work; there are no pairs to deliver.
#pragma once

#include <cstdint>

#include "cuda/clusters/cluster_kernels.h"
#include "cuda/device/slice_source.h"
#include "cuda/grid/grid_walk.h"
#include "cuda/grid/range_plan.h"

namespace gpujoin::cuda {

/// Bytes of the device that a row takes beside the index, at most.
inline constexpr std::uint64_t kClusterRowBytes = 72;

class ClusterWalk final : public SliceSource {
 public:
  /// `side` is named. `stop` is as in make_join_view(). Throws CudaError or MemoryLimitExceeded.
  ClusterWalk(const JoinRequest& request, const RangePlan& plan, const WalkSide& side,
              MemoryBudget& device_budget, HostBudget& host_budget, const unsigned* stop,
              cudaStream_t stream);

  void start_slice() override;
  bool finish_slice() override;
  bool finished() const override { return phase_ == Phase::kEnd; }
  CountedSlice slice() const override { return {}; }
  const std::uint32_t* sequence() const override { return nullptr; }
  void fill(const Stretch&, const FillRange&, cudaStream_t) override {}
  Buffer<std::uint32_t> counts() override { return {}; }
  Buffer<std::uint64_t> clusters() override;
  std::uint64_t pairs() const override { return 0; }
  void describe(JoinStats* stats) const override;

 private:
  enum class Phase { kCells, kMeasure, kCores, kLinks, kUnite, kBorders, kNumber, kEnd };

  void find_cells();
  void measure_cells();
  void make_directory();
  template <class Launch>
  void launch_slice(const Launch& launch);
  void number_clusters();

  MemoryBudget& device_budget_;
  HostBudget& host_budget_;
  const cudaStream_t stream_;
  ClusterLabels labels_;
  KernelChoice choice_{};
  ClusterView view_{};
  Phase phase_ = Phase::kCells;
  std::uint32_t end_ = 0;  ///< of the phase's slice

  DeviceBuffer<std::uint32_t> cell_of_, cell_starts_, directory_, first_core_;
  DeviceBuffer<std::uint64_t> cell_keys_, boxes_;
  DeviceBuffer<std::uint8_t> whole_;
  DeviceBuffer<unsigned long long> candidates_;
  PinnedBlock host_last_, host_candidates_;
};

}  // namespace gpujoin::cuda
