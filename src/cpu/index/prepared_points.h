// One side of a range join of the CPU engine, indexed by the plan that both sides have in common.
#pragma once

#include <memory>

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
  ScreenLooks looks;    ///< IndexMethod::kTiles only
  ScreenRadius radius;  ///< likewise
};

/// The plans of one join, or of all parts of one.
class RangePlans {
 public:
  explicit RangePlans(const JoinRequest& request) : request_(request) {}

  /// The plan; of a join by cosine distance among whose directions is a faint one, another than of
  /// one without. The data of the request is read when a plan is first asked for. Throws
  /// std::bad_alloc.
  const std::shared_ptr<const RangePlan>& plan(bool any_direction = false);

 private:
  const JoinRequest request_;
  std::shared_ptr<const RangePlan> plans_[2];
};

struct PreparedPoints final : PreparedSide {
  std::shared_ptr<const RangePlan> plan;
  Dataset points;  ///< whose distances count
  Directions directions;
  Dataset indexed;  ///< the points, or for cosine their directions
  GridIndex index;
  TileIndex tiles;  ///< IndexMethod::kTiles only
};

/// Indexes the points, which outlive the result. Throws MemoryLimitExceeded, std::bad_alloc,
/// Stopped.
std::shared_ptr<PreparedPoints> prepare_points(WorkerPool& pool, MemoryBudget& budget,
                                               const std::shared_ptr<const RangePlan>& plan,
                                               const Dataset& points);

/// Bytes of memory that preparing takes a row, at most, besides the points themselves.
std::uint64_t prepared_row_bytes(const JoinRequest& request, const RangePlan& plan);

/// The same by whichever plan the request may have.
std::uint64_t most_prepared_row_bytes(const JoinRequest& request);

}  // namespace gpujoin::cpu
