// Clusters in an index of small cells (core/cluster.h): core points are counted, those near each
// other become one cluster by union-find in device memory, border points follow a core point.
#pragma once

#include <cstdint>

#include "cuda/clusters/cluster_kernels.h"
#include "cuda/clusters/cluster_source.h"
#include "cuda/grid/grid_walk.h"
#include "cuda/grid/range_plan.h"

namespace gpujoin::cuda {

/// Bytes of the device that a row takes beside the index, at most.
inline constexpr std::uint64_t kClusterRowBytes = 72;

class ClusterWalk final : public ClusterSource {
 public:
  /// `side` is named. `stop` is as in make_join_view(). Throws CudaError or MemoryLimitExceeded.
  ClusterWalk(const JoinRequest& request, const RangePlan& plan, const WalkSide& side,
              JoinResources& resources, const unsigned* stop);

  void start_slice() override;
  bool finish_slice() override;
  bool finished() const override { return phase_ == Phase::kEnd; }
  void describe(JoinStats* stats) const override;

 private:
  enum class Phase { kCells, kMeasure, kCores, kLinks, kUnite, kBorders, kNumber, kEnd };

  void find_cells();
  void measure_cells();
  void make_directory();
  template <class Launch>
  void launch_slice(const Launch& launch);
  void number_clusters();

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
