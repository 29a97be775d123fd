// The best pairs of a join by walking the grid, slice by slice. Three ways (TopkMethod) to admit
// pairs: pairs that beat the worst of the best so far, by a threshold that all thread blocks read
// and that rises between slices; each point's own best pairs; or all pairs.
#pragma once

#include <cstdint>
#include <optional>

#include "cuda/grid/grid_walk.h"
#include "cuda/top/top_selection.h"
#include "engine/request/buffer.h"

namespace gpujoin::cuda {

/// Delivers one slice of pairs, the result: its places are ranks.
class TopWalk final : public SliceSource {
 public:
  /// `view` has the ids of both sides.
  TopWalk(const JoinRequest& request, const RangePlan& plan, const JoinView& view,
          const double* left_scores, const double* right_scores, const WorkShare& share,
          JoinResources& resources, cudaStream_t stream);

  void start_slice() override;
  bool finish_slice() override;
  bool finished() const override {
    return rest_.count() == 0 && share_.is_taken(view_.left.points);
  }
  CountedSlice slice() const override;
  const std::uint32_t* sequence() const override { return host_lefts_.as<std::uint32_t>(); }
  /// The slice has its neighbours from the start.
  void fill(const Stretch&, const FillRange&, cudaStream_t) override {}
  Buffer<std::uint32_t> counts() override { return {}; }
  std::uint64_t pairs() const override { return selection_->kept(); }
  void describe(JoinStats* stats) const override;

 private:
  void look_at_scores(const double* left_scores, const double* right_scores);
  void choose_kernel();
  std::uint64_t choose_capacity() const;
  void choose_slice();
  void shrink_slice();
  void deliver_best();

  const JoinRequest& request_;
  const RangePlan& plan_;
  JoinView view_;
  JoinResources& resources_;
  cudaStream_t stream_;
  TopkMethod method_;
  WorkShare share_;
  KernelChoice kernel_{};
  TopView top_{};
  DeviceBuffer<Interval> right_blocks_;
  std::optional<TopSelection> selection_;
  DeviceBuffer<unsigned char> heaps_;
  std::uint32_t slice_points_ = 0;
  std::uint32_t most_slice_points_ = 0;
  Places rest_;            ///< points taken, without those of slices that are done
  std::uint32_t end_ = 0;  ///< of the slice, which begins with them
  DeviceBuffer<unsigned long long> candidates_;
  PinnedBlock host_candidates_;
  std::uint64_t looked_at_ = 0;
  std::uint64_t walked_points_ = 0;

  // The result.
  DeviceBuffer<std::uint32_t> lefts_, rights_;
  DeviceBuffer<double> scores_;
  PinnedBlock host_lefts_;
  Buffer<std::uint64_t> offsets_;
};

}  // namespace gpujoin::cuda
