// The range join of the CUDA engine: how its sides are prepared, and which source finds its pairs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/clusters/cluster_exchange.h"
#include "cuda/device/sliced_join.h"
#include "cuda/device/upload.h"
#include "cuda/grid/prepared_side.h"
#include "cuda/tiles/tile_points.h"
#include "engine/joins/work_share.h"
#include "engine/request/buffer.h"
#include "engine/stopwatch.h"

namespace gpujoin::cuda {

/// The rows of a join's sides, which are copied to the device while the join is planned.
struct EarlyUpload {
  EarlyUpload() = default;  ///< none
  /// Makes room for the rows, unless they are in the slots, which may be null. Throws CudaError,
  /// MemoryLimitExceeded or std::bad_alloc.
  EarlyUpload(const JoinRequest& request, const std::shared_ptr<JoinResources>& resources,
              const std::shared_ptr<SideSlot>& left_rows,
              const std::shared_ptr<SideSlot>& right_rows);

  /// Copies rows for some milliseconds. True: all are copied. Throws CudaError.
  bool copy_piece() const { return left->copy_piece(*uploader) && right->copy_piece(*uploader); }
  /// What is still to be copied.
  std::uint64_t bytes_left() const;

  std::shared_ptr<Uploader> uploader;
  std::shared_ptr<ArrivingRows> left, right;  ///< of a self-join the same
};

/// The plan of a join whose sides have rows, or of all parts of one. Chooses tiles only where
/// tensor cores are as exact as the screen assumes. Rows are copied meanwhile, if any are to be
/// copied. Throws Unable where no other method serves the metric, CudaError, MemoryLimitExceeded or
/// std::bad_alloc.
std::shared_ptr<const RangePlan> plan_range_join(const JoinRequest& request,
                                                 JoinResources& resources,
                                                 const EarlyUpload& upload = {});

/// The sides of the share that began a join on several devices, once it has them: the others copy
/// them.
struct FirstSides {
  std::weak_ptr<const PreparedSide> left, right;
};

/// What a join shares with others, and with its planning. Any pointer may be null, but the plan of
/// sides that have rows.
struct RangeShares {
  /// Whether both sides are there.
  bool are_prepared() const {
    return plan && left && left->find(plan.get()) && right->find(plan.get());
  }

  std::shared_ptr<const RangePlan> plan;
  std::shared_ptr<SideSlot> left, right;            ///< sides by the plan; one of one dataset
  std::shared_ptr<SideSlot> left_rows, right_rows;  ///< rows as they came
  EarlyUpload upload;                               ///< of these rows, where it has begun
  WorkShare work;                                   ///< left points, in the order of the walk
  std::shared_ptr<FirstSides> first;
  std::shared_ptr<ClusterExchange> exchange;  ///< of clusters by tiles
};

/// As SlicedJoin. Rows lie in memory.
class RangeJoin final : public SlicedJoin {
 public:
  RangeJoin(const JoinRequest& request, std::shared_ptr<JoinResources> resources,
            RangeShares shares);
  ~RangeJoin() override { halt(); }

  void stats(JoinStats* stats) const override;

 private:
  void prepare() override;
  std::shared_ptr<PreparedSide> find_side(SideSlot* slot,
                                          const std::weak_ptr<const PreparedSide>& first);
  std::shared_ptr<PreparedSide> make_side(const Dataset& data, std::shared_ptr<ArrivingRows> rows,
                                          const std::shared_ptr<SideSlot>& slot);
  void upload_piece();
  void name_points(PreparedSide& side, const Dataset& data);
  void finish_sides();
  TileRadii tile_radii() const;
  std::unique_ptr<SliceSource> make_source();

  RangeShares shares_;
  const std::shared_ptr<Uploader> uploader_;
  const std::shared_ptr<const RangePlan> plan_;
  std::shared_ptr<PreparedSide> left_, right_;  ///< of a self-join the same
  /// A side that is not borrowed from another join, and its rows.
  struct OwnSide {
    PreparedSide* side;
    const Dataset* data;
  };
  std::vector<OwnSide> own_sides_;
  std::size_t indexed_ = 0;            ///< of them
  DeviceBuffer<unsigned> queue_;       ///< for the grid's launches
  Buffer<std::int64_t> left_numbers_;  ///< of a side that meets no rows and has no ids
  Stopwatch since_open_;
};

}  // namespace gpujoin::cuda
