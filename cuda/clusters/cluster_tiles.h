// Clusters of points by dense tiles (core/cluster.h), for many columns and for cosine distance: one
// walk counts neighbours until points have min_points of them, another one unites core points near
// each other and lets border points follow. Each walk compares the tiles with themselves first,
// then the ones above the diagonal: by then, tiles in dense places are known to be full, or one
// cluster, and are not compared.
//
// Several devices share the rows of tiles above the diagonal, and each compares the tiles on it.
// After each walk they wait for each other, and what they found is merged (core/shared_clusters.h):
// neighbours on all devices, clusters on the first one, which numbers them.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/clusters/cluster_exchange.h"
#include "cuda/clusters/cluster_source.h"
#include "cuda/clusters/cluster_tile_kernels.h"
#include "cuda/grid/range_plan.h"
#include "cuda/tiles/tile_walk.h"
#include "engine/joins/work_share.h"

namespace gpujoin::cuda {

/// How devices share clusters. `exchange` is the same for all of them, and null where one device
/// has all the work.
struct ClusterSharing {
  WorkShare work;  ///< rows of tiles
  std::shared_ptr<ClusterExchange> exchange;
};

class ClusterTiles final : public ClusterSource {
 public:
  /// Rounds the points, for which it waits. `side` is named. `stop` is as for TileWalk. Throws
  /// CudaError, MemoryLimitExceeded or std::bad_alloc.
  ClusterTiles(const JoinRequest& request, const RangePlan& plan, const TileRadii& radii,
               const TileWalkSide& side, ClusterSharing sharing, JoinResources& resources,
               const unsigned* stop);

  void start_slice() override;
  bool finish_slice() override;
  bool finished() const override { return phase_ == Phase::kEnd; }
  bool waits() const override;
  void describe(JoinStats* stats) const override;

 private:
  enum class Phase { kCount, kUnite, kNumber, kEnd };
  /// Each of the first two phases has these.
  enum class Step {
    kDiagonal,
    kAbove,
    kGive,   ///< what was found to the other devices
    kMerge,  ///< what all have found, once they have
  };

  void make_room();
  void begin(Phase phase);
  void begin_next();
  std::uint32_t all_rows() const { return view_.tiles - 1; }  ///< of tiles, above the diagonal
  bool is_first() const { return sharing_.work.is_first(); }
  void choose_tiles();
  void compare_tiles();
  void go_on();
  void end_walk();
  void leave();
  void give();
  void merge();
  void number_clusters();

  ClusterSharing sharing_;
  const std::uint64_t memory_limit_;  ///< of the device
  const int multiprocessors_;
  TilePoints points_;
  ScreenView screen_{};
  Decision decision_{};
  ClusterTilesView view_{};
  Phase phase_ = Phase::kCount;
  Step step_ = Step::kDiagonal;
  bool merged_ = false;

  TileChoice choice_;                ///< of the slice
  Places rows_;                      ///< of tiles, taken last, of which the first are done
  std::uint32_t column_ = 0;         ///< above the diagonal if the row was begun
  std::uint64_t most_tiles_ = 0;     ///< of a slice
  std::uint64_t tile_capacity_ = 0;  ///< pairs of tiles there is room for
  std::uint64_t screened_ = 0, rechecked_ = 0;

  DeviceBuffer<TileReport> report_;
  PinnedBlock host_report_;
  DeviceBuffer<uint2> tiles_, candidates_;
  DeviceBuffer<std::uint32_t> counts_, whole_rows_, cores_;
  DeviceBuffer<std::uint32_t> common_;  ///< counts that the first device adds
  DeviceBuffer<TileState> states_;
};

}  // namespace gpujoin::cuda
