// The range join of the CPU engine: its phases and its state. Cell geometry and distances are
// src/core's, the indexes are prepared_points', the walks are walker's and tile_walker's.
#pragma once

#include <memory>

#include "cpu/index/prepared_points.h"
#include "cpu/threaded_join.h"
#include "cpu/walk/join_plan.h"

namespace gpujoin::cpu {

class RangeJoin final : public ThreadedJoin {
 public:
  /// Starts the threads. The request is a valid one. Throws std::system_error or std::bad_alloc.
  explicit RangeJoin(const JoinRequest& request);
  /// The same for a part of a join, which shares plans and memory with the others; they and the
  /// slots outlive it.
  RangeJoin(const JoinRequest& request, RangePlans& plans, std::shared_ptr<MemoryBudget> budget,
            SideSlot* left, SideSlot* right);
  /// Stops the threads wherever they are and waits for them.
  ~RangeJoin() override;

 private:
  void run() override;
  ResultBatch view(const BatchBuffer& buffer) const override;

  std::shared_ptr<PreparedPoints> take(const Dataset& data, SideSlot* slot);
  void prepare();
  JoinPlan plan_walk() const;
  void join(const JoinPlan& plan);

  RangePlans own_plans_;  // where no others are given
  RangePlans& plans_;
  SideSlot* left_slot_ = nullptr;
  SideSlot* right_slot_ = nullptr;
  std::shared_ptr<const RangePlan> plan_;
  std::shared_ptr<PreparedPoints> left_;
  std::shared_ptr<PreparedPoints> right_;  // of a self-join the same
  bool mirrored_ = false;                  // set before the first batch
};

}  // namespace gpujoin::cpu
