// The range join of the CUDA engine: how its sides are prepared, and which source finds its pairs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/device/sliced_join.h"
#include "cuda/device/upload.h"
#include "cuda/grid/prepared_side.h"
#include "engine/request/buffer.h"
#include "engine/stopwatch.h"

namespace gpujoin::cuda {

/// The plan of a join whose sides have rows, or of all parts of one. Chooses tiles only where
/// tensor cores are as exact as the screen assumes. Throws Unable where no other method serves the
/// metric, CudaError, MemoryLimitExceeded or std::bad_alloc.
std::shared_ptr<const RangePlan> plan_range_join(const JoinRequest& request,
                                                 JoinResources& resources);

/// As SlicedJoin. Rows lie in memory.
class RangeJoin final : public SlicedJoin {
 public:
  RangeJoin(const JoinRequest& request, std::shared_ptr<JoinResources> resources);
  /// The same for a part of a join. Parts share plan and resources; slots outlive it, null: none.
  RangeJoin(const JoinRequest& request, std::shared_ptr<JoinResources> resources,
            std::shared_ptr<const RangePlan> plan, SideSlot* left, SideSlot* right);
  ~RangeJoin() override { halt(); }

  void stats(JoinStats* stats) const override;

 private:
  void prepare() override;
  bool next_counts(ResultBatch* batch) override;
  std::shared_ptr<PreparedSide> take(const Dataset& data, SideSlot* slot);
  void upload_piece();
  void name();
  double tile_radius() const;
  std::unique_ptr<SliceSource> make_source();
  void collect_counts();

  Uploader uploader_;
  std::shared_ptr<const RangePlan> plan_;
  SideSlot* left_slot_ = nullptr;
  SideSlot* right_slot_ = nullptr;
  std::shared_ptr<PreparedSide> left_, right_;  ///< of a self-join the same
  std::vector<PreparedSide*> own_sides_;        ///< not borrowed from another join
  std::size_t indexed_ = 0;                     ///< of them
  DeviceBuffer<unsigned> queue_;                ///< for the grid's launches
  PinnedBlock rows_;                            ///< [rows] 0, 1, ..., where counts are wanted
  Buffer<std::uint64_t> row_counts_;            ///< likewise
  std::uint64_t delivered_ = 0;                 ///< rows of them
  Buffer<std::int64_t> left_numbers_;           ///< of a side that meets no rows and has no ids
  Stopwatch since_open_;
};

}  // namespace gpujoin::cuda
