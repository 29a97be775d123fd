#include "cpu/index/prepared_points.h"

#include <algorithm>
#include <numeric>

#include "engine/strategy/choose_strategy.h"

namespace gpujoin::cpu {
namespace {

constexpr IndexForm kForm{.value_bits = 52, .single_distances = false, .wide_cluster_cells = true};

/// Sums in column order need the order of columns alone.
ScreenFrame frame_of(const JoinRequest& request, const Strategy& strategy) {
  if (strategy.screened)
    return choose_screen_frame(in_memory(request), strategy.reorder_dimensions);
  ScreenFrame frame;
  frame.order.resize(request.left().dims);
  std::iota(frame.order.begin(), frame.order.end(), 0u);
  return frame;
}

RangePlan make_plan(const JoinRequest& request, const Strategy& strategy, bool any_direction) {
  const std::uint32_t dims = request.left().dims;
  const bool tiles = strategy.index == IndexMethod::kTiles;
  RangePlan plan{.index = plan_index(request, strategy, kForm, any_direction),
                 .layout = {},
                 .checkpoints = {},
                 .radius = {}};
  plan.layout = {plan.index.order, frame_of(request, strategy), tiles, plan.index.open_keys};
  if (!tiles) return plan;
  plan.checkpoints = make_checkpoints(dims, strategy.short_circuit);
  plan.radius =
      make_screen_radius(plan.index.eps, plan.index.sure_eps, dims, plan.layout.frame.scale);
  return plan;
}

/// Rows, ids, sort values and cells; distances to reference points; directions; and while rows are
/// sorted two items and the number of a bucket.
std::uint64_t row_bytes(const JoinRequest& request, std::uint64_t reference_points) {
  constexpr std::uint64_t kIndexed = 4 + 8 + 8 + 12, kSorting = 2 * 16 + 2;
  const bool directions = request.metric() == Metric::kCosine;
  return kIndexed + kSorting + sizeof(double) * (reference_points + request.keys.count) +
         (directions ? sizeof(float) * request.left().dims : 0);
}

/// In tiles for scans: the coordinates.
std::uint64_t scan_bytes(const JoinRequest& request) {
  return request.metric() == Metric::kCosine ? sizeof(float) * request.left().dims
                                             : point_bytes(request.left());
}

/// In tiles for screens: the coordinates in single precision, thresholds, and shares of boxes.
std::uint64_t screen_bytes(std::uint64_t dims) {
  constexpr std::uint64_t kMostThresholds = 18,
                          kBoxes = 2 * 2 * 8 * kMaxGridDimensions / kGroupPoints;
  return sizeof(float) * (dims + kMostThresholds) + kBoxes;
}

}  // namespace

std::shared_ptr<const RangePlan> RangePlans::plan(const JoinRequest& asked, bool any_direction) {
  const JoinRequest request = asked.asking({asked.metric(), std::max(eps_, asked.eps())});
  const std::lock_guard lock(mutex_);  // who comes meanwhile waits for the plan
  std::shared_ptr<const RangePlan>& plan = plans_[any_direction];
  const auto& other = plans_[!any_direction];
  if (!plan)
    plan = std::make_shared<const RangePlan>(make_plan(
        request, other ? other->index.strategy : choose_strategy(request), any_direction));
  return plan;
}

std::shared_ptr<const RangePlan> RangePlans::known_plan(bool any_direction) const {
  const std::lock_guard lock(mutex_);
  return plans_[any_direction];
}

std::shared_ptr<PreparedPoints> prepare_points(WorkerPool& pool,
                                               std::shared_ptr<MemoryBudget> whole,
                                               std::shared_ptr<const RangePlan> by,
                                               const Dataset& points) {
  auto side = std::make_shared<PreparedPoints>(std::move(by), std::move(whole));
  if (points.rows == 0) return side;
  const RangePlan& plan = *side->range_plan;
  MemoryBudget& budget = side->budget;
  Dataset indexed = points;
  if (plan.index.directions) {
    side->directions = find_directions(pool, budget, points);
    indexed = side->directions.view(points);
  }
  side->index = build_index(pool, budget, plan.layout,
                            make_index_columns(pool, budget, indexed, plan.index.references));
  if (plan.index.strategy.index == IndexMethod::kTiles)
    side->tiles =
        build_tiles(pool, budget, plan.layout, indexed, side->index, plan.checkpoints, plan.radius);
  return side;
}

std::uint64_t prepared_row_bytes(const JoinRequest& request, const RangePlan& plan) {
  const bool tiles = plan.index.strategy.index == IndexMethod::kTiles;
  return row_bytes(request, plan.index.references.count) +
         (tiles ? screen_bytes(request.left().dims) : scan_bytes(request));
}

std::uint64_t most_prepared_row_bytes(const JoinRequest& request) {
  return row_bytes(request, most_reference_points(request)) +
         std::max(screen_bytes(request.left().dims), scan_bytes(request));
}

}  // namespace gpujoin::cpu
