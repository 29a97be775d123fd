#include "cpu/range_join.h"

#include <algorithm>
#include <utility>

#include "core/threshold.h"
#include "core/tile_screen.h"
#include "cpu/walk/tile_walker.h"
#include "cpu/walk/walker.h"
#include "engine/stopwatch.h"
#include "engine/strategy/choose_strategy.h"

namespace gpujoin::cpu {

RangeJoin::RangeJoin(const JoinRequest& request)
    : ThreadedJoin(request), own_plans_(request), plans_(own_plans_) {
  start();
}

RangeJoin::RangeJoin(const JoinRequest& request, RangePlans& plans,
                     std::shared_ptr<MemoryBudget> budget, SideSlot* left, SideSlot* right)
    : ThreadedJoin(request, std::move(budget)),
      own_plans_(request),
      plans_(plans),
      left_slot_(left),
      right_slot_(right) {
  start();
}

RangeJoin::~RangeJoin() { stop(); }

void RangeJoin::run() {
  if (request_.left().rows > 0) prepare();
  join(plan_walk());
}

/// The side as plan_ has it: from its slot, or made anew.
std::shared_ptr<PreparedPoints> RangeJoin::take(const Dataset& data, SideSlot* slot) {
  auto side = slot != nullptr ? std::static_pointer_cast<PreparedPoints>(*slot) : nullptr;
  if (side && side->plan == plan_) return side;
  if (slot != nullptr) slot->reset();
  side = prepare_points(pool_, budget_, plan_, data);
  if (slot != nullptr) *slot = side;
  return side;
}

/// Chooses how to join and indexes both sides.
void RangeJoin::prepare() {
  const Stopwatch watch;
  const auto take_sides = [&](bool any_direction) {
    left_ = right_ = nullptr;
    plan_ = plans_.plan(any_direction);
    left_ = take(request_.left(), left_slot_);
    right_ = request_.self_join() ? left_ : take(request_.right(), right_slot_);
  };
  take_sides(false);
  if (left_->directions.faint || right_->directions.faint) take_sides(true);
  note([&](JoinStats& stats) {
    stats.strategy = plan_->index.strategy;
    stats.index_ms = watch.milliseconds();
  });
}

JoinPlan RangeJoin::plan_walk() const {
  JoinPlan plan{};
  plan.metric = request_.metric();
  plan.pairs = request_.pairs();
  plan.output = request_.output();
  plan.batch_entries = batch_entries();
  if (!left_) return plan;
  const IndexPlan& index = plan_->index;
  const std::uint32_t dims = request_.left().dims;
  plan.threshold = index.threshold;
  plan.reach = index.reach;
  plan.screen = make_screen_bounds(index.metric, index.threshold.raw, dims);
  if (index.directions) {
    plan.threshold.raw = make_threshold(request_.metric(), request_.eps()).raw;
    plan.screen.accept = -1;  // directions decide nothing
  }
  plan.strategy = index.strategy;
  plan.strategy.access_pattern = pattern_of(request_, index.strategy.index);
  plan.layout = &plan_->layout;
  plan.kernel =
      choose_scan_kernel(index.metric, left_->indexed.scalar, dims, plan.strategy.screened);
  plan.left = &left_->index;
  plan.right = &right_->index;
  plan.left_points = &left_->points;
  plan.right_points = &right_->points;
  return plan;
}

/// Walks the left index on all workers and puts the result into the queue.
void RangeJoin::join(const JoinPlan& plan) {
  add_buffers();
  mirrored_ = left_ && plan.mirrored();
  std::uint64_t total = 0;
  if (left_ && plan.strategy.index != IndexMethod::kTiles)
    total = walk_cells(plan, tools());
  else if (left_)
    total = walk_tiles({&plan, &left_->tiles, &right_->tiles, plan_->looks, choose_group_screen(),
                        true_reach(plan_->index.eps, request_.left().dims)},
                       tools());
  if (plan.output == Output::kTotal) put_total(total);
}

ResultBatch RangeJoin::view(const BatchBuffer& buffer) const {
  ResultBatch batch = batch_of(buffer);
  if (left_) batch.left_ids = left_->index.ids.data();
  if (right_) batch.right_ids = right_->index.ids.data();
  batch.mirrored = mirrored_;
  return batch;
}

}  // namespace gpujoin::cpu
