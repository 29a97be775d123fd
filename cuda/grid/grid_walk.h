// Pairs by walking the grid: each point is compared with the points of its own cell and of the
// cells around it [GPU-SJ, section 3.4]. Counts first, so that every pair's place is known, then
// fills.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/device/slice_source.h"
#include "cuda/grid/device_sums.h"
#include "cuda/grid/range_kernels.h"
#include "cuda/grid/range_plan.h"
#include "engine/joins/work_share.h"

namespace gpujoin::cuda {

/// One side of a join, ordered: its index, and its ids in index order where they are wanted.
struct WalkSide {
  const DeviceIndex* index;
  const std::int64_t* ids;
};

/// A join as kernels see it. `stop` is a word on the device that makes them leave when it is not 0.
JoinView make_join_view(const JoinRequest& request, const IndexPlan& plan, const WalkSide& left,
                        const WalkSide& right, const unsigned* stop);

class GridWalk final : public SliceSource {
 public:
  /// Chooses kernels and makes room. `stop` is as in make_join_view(), `queue` a word on the device
  /// for launches on the join's stream. `sums` is null unless pairs are to be added up.
  GridWalk(const JoinRequest& request, const RangePlan& plan, const WalkSide& left,
           const WalkSide& right, const WorkShare& share, MemoryBudget& device_budget,
           HostBudget& host_budget, unsigned resident_blocks, const unsigned* stop, unsigned* queue,
           cudaStream_t stream, std::unique_ptr<DeviceSums> sums);

  void start_slice() override;
  bool finish_slice() override;
  bool finished() const override { return share_.is_taken(view_.left.points); }
  CountedSlice slice() const override;
  const std::uint32_t* sequence() const override { return host_sequence_.as<std::uint32_t>(); }
  void fill(const Stretch& stretch, const FillRange& range, cudaStream_t stream) override;
  Buffer<std::uint32_t> counts() override;
  const FoldWord* sums(std::uint64_t first, std::uint64_t rows) override;
  std::uint64_t pairs() const override;
  void describe(JoinStats* stats) const override;

 private:
  void choose_kernels(unsigned resident_blocks);
  void order_by_workload();
  void make_room(unsigned resident_blocks);
  template <class Clear>
  void clear_others(const Clear& clear) const;

  const JoinRequest& request_;
  const RangePlan& plan_;
  WorkShare share_;
  MemoryBudget& device_budget_;
  HostBudget& host_budget_;
  const std::unique_ptr<DeviceSums> sums_;
  unsigned* queue_;
  cudaStream_t stream_;
  JoinView view_{};
  KernelChoice count_kernel_{}, fill_kernel_{};

  std::uint32_t slice_points_ = 0, busy_points_ = 0;
  std::uint32_t first_ = 0;  ///< of the slice
  std::uint32_t end_ = 0;
  std::vector<Places> walked_;          ///< slices begun, in their order
  std::uint64_t candidates_ = 0;        ///< of all finished slices
  std::uint64_t slice_candidates_ = 0;  ///< of the slice finished last
  std::uint64_t walked_points_ = 0;     ///< of all finished slices
  std::uint32_t most_fill_threads_ = 0;
  DeviceBuffer<unsigned long long> totals_;  ///< pairs found, candidates
  PinnedBlock host_totals_;
  DeviceBuffer<std::uint32_t> sequence_;
  DeviceBuffer<std::uint32_t> counts_;
  DeviceBuffer<std::uint64_t> offsets_;
  PinnedBlock host_offsets_;   ///< like offsets_
  PinnedBlock host_sequence_;  ///< [points]
};

}  // namespace gpujoin::cuda
