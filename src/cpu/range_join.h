// The range join of the CPU engine: its phases and its state. Cell geometry and distances are
// src/core's, the indexes are prepared_points', the walks are walker's and tile_walker's.
#pragma once

#include <memory>

#include "cpu/index/prepared_points.h"
#include "cpu/threaded_join.h"
#include "cpu/walk/join_plan.h"
#include "cpu/walk/tile_walker.h"

namespace gpujoin::cpu {

class RangeJoin final : public ThreadedJoin {
 public:
  /// Starts the threads. The request is a valid one. Other joins may share plans, memory and slots,
  /// which may be null. Throws std::system_error or std::bad_alloc.
  RangeJoin(const JoinRequest& request, std::shared_ptr<RangePlans> plans,
            std::shared_ptr<MemoryBudget> budget, std::shared_ptr<SideSlot> left = nullptr,
            std::shared_ptr<SideSlot> right = nullptr);
  /// Stops the threads wherever they are and waits for them.
  ~RangeJoin() override;

 private:
  void run() override;
  ResultBatch view(const BatchBuffer& buffer) const override;

  std::shared_ptr<PreparedPoints> take(const Dataset& data, SideSlot* slot);
  void take_sides(bool any_direction);
  void prepare();
  JoinPlan plan_walk();
  TilePlan plan_tiles(const JoinPlan& plan) const;
  void join(const JoinPlan& plan);

  const std::shared_ptr<RangePlans> plans_;
  const std::shared_ptr<SideSlot> left_slot_, right_slot_;
  std::shared_ptr<const RangePlan> plan_;
  std::shared_ptr<PreparedPoints> left_;
  std::shared_ptr<PreparedPoints> right_;   // of a self-join the same
  std::uint32_t indexed_ = 0;               // sides, by this join
  Dataset left_indexed_ = request_.left();  // or for cosine its directions
  bool mirrored_ = false;                   // set before the first batch
};

}  // namespace gpujoin::cpu
