// One side of a range join of the CPU engine, indexed by the plan that both sides have in common.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "cpu/index/directions.h"
#include "cpu/index/grid_index.h"
#include "cpu/index/tile_index.h"
#include "engine/joins/prepared_side.h"
#include "engine/strategy/index_plan.h"

namespace gpujoin::cpu {

/// How points are prepared.
struct RangePlan {
  IndexPlan index;
  IndexLayout layout;
  Checkpoints checkpoints;  ///< IndexMethod::kTiles only
  ScreenRadius radius;      ///< likewise
};

/// The plans of one join, of all parts of one, or of joins with one key. From any thread.
class RangePlans {
 public:
  /// Plans for this radius, which serve smaller ones, or for a request's that is larger.
  explicit RangePlans(double eps = 0) : eps_(eps) {}
  /// The plan of the request; of a join by cosine distance among whose directions is an extreme
  /// one, another than of one without. The data is read when a plan is first asked for. Throws
  /// std::bad_alloc.
  std::shared_ptr<const RangePlan> plan(const JoinRequest& request, bool any_direction = false);
  /// The same, null unless it was asked for.
  std::shared_ptr<const RangePlan> known_plan(bool any_direction) const;

 private:
  const double eps_;
  mutable std::mutex mutex_;
  std::shared_ptr<const RangePlan> plans_[2];
};

/// It does not need the points any more.
struct PreparedPoints final : PreparedSide {
  PreparedPoints(std::shared_ptr<const RangePlan> by, std::shared_ptr<MemoryBudget> whole)
      : range_plan(std::move(by)), budget(std::move(whole)) {}
  const void* plan() const override { return range_plan.get(); }
  SideBytes bytes() const override { return {budget.used(), 0}; }

  const std::shared_ptr<const RangePlan> range_plan;
  MemoryBudget budget;  ///< of what follows
  Directions directions;
  GridIndex index;
  TileIndex tiles;  ///< IndexMethod::kTiles only
};

/// Indexes the points. Their memory is taken of the budget, which stays as long as they. Throws
/// MemoryLimitExceeded, std::bad_alloc, Stopped.
std::shared_ptr<PreparedPoints> prepare_points(WorkerPool& pool,
                                               std::shared_ptr<MemoryBudget> budget,
                                               std::shared_ptr<const RangePlan> plan,
                                               const Dataset& points);

/// Bytes of memory that preparing takes a row, at most, besides the points themselves.
std::uint64_t prepared_row_bytes(const JoinRequest& request, const RangePlan& plan);

/// The same by whichever plan the request may have.
std::uint64_t most_prepared_row_bytes(const JoinRequest& request);

}  // namespace gpujoin::cpu
