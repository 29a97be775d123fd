// Clusters of points by dense tiles (core/cluster.h), for many columns and for cosine distance: one
// walk counts neighbours until points have min_points of them, another one unites core points near
// each other and lets border points follow. Each walk compares the tiles with themselves first,
// then the ones above the diagonal: by then, tiles in dense places are known to be full, or one
// cluster, and are not compared. A slice is a part of a walk; there are no pairs to deliver.
#pragma once

#include <cstdint>

#include "cuda/clusters/cluster_tile_kernels.h"
#include "cuda/device/slice_source.h"
#include "cuda/grid/range_plan.h"
#include "cuda/tiles/tile_walk.h"

namespace gpujoin::cuda {

class ClusterTiles final : public SliceSource {
 public:
  /// Rounds the points, for which it waits. `side` is named. `stop` is as for TileWalk. Throws
  /// CudaError, MemoryLimitExceeded or std::bad_alloc.
  ClusterTiles(const JoinRequest& request, const RangePlan& plan, const TileRadii& radii,
               const TileWalkSide& side, MemoryBudget& device_budget, HostBudget& host_budget,
               int multiprocessors, const unsigned* stop, cudaStream_t stream);

  void start_slice() override;
  bool finish_slice() override;
  bool finished() const override { return phase_ == Phase::kEnd; }
  CountedSlice slice() const override { return {}; }
  const std::uint32_t* sequence() const override { return nullptr; }
  void fill(const Stretch&, const FillRange&, cudaStream_t) override {}
  Buffer<std::uint32_t> counts() override { return {}; }
  Buffer<std::uint64_t> clusters() override { return labels_.words(host_budget_); }
  std::uint64_t pairs() const override { return 0; }
  void describe(JoinStats* stats) const override;

 private:
  enum class Phase { kCount, kUnite, kNumber, kEnd };

  void make_room();
  void begin(Phase phase);
  void choose_tiles();
  bool go_on();
  void number_clusters();

  MemoryBudget& device_budget_;
  HostBudget& host_budget_;
  const std::uint64_t memory_limit_;  ///< of the device
  const int multiprocessors_;
  const cudaStream_t stream_;
  ClusterLabels labels_;
  TilePoints points_;
  ScreenView screen_{};
  Decision decision_{};
  ClusterTilesView view_{};
  Phase phase_ = Phase::kCount;

  TileChoice choice_;                ///< of the slice
  std::uint32_t row_ = 0;            ///< of tiles, the first that is not done
  std::uint32_t column_ = 0;         ///< above the diagonal if the row was begun
  std::uint64_t most_tiles_ = 0;     ///< of a slice
  std::uint64_t tile_capacity_ = 0;  ///< pairs of tiles there is room for
  std::uint64_t screened_ = 0, rechecked_ = 0;

  DeviceBuffer<TileReport> report_;
  PinnedBlock host_report_;
  DeviceBuffer<uint2> tiles_, candidates_;
  DeviceBuffer<std::uint32_t> counts_, whole_rows_, cores_;
  DeviceBuffer<TileState> states_;
};

}  // namespace gpujoin::cuda
