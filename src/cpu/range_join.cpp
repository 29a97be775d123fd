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

RangeJoin::RangeJoin(const JoinRequest& request, std::shared_ptr<RangePlans> plans,
                     std::shared_ptr<MemoryBudget> budget, std::shared_ptr<SideSlot> left,
                     std::shared_ptr<SideSlot> right)
    : ThreadedJoin(request, std::move(budget)),
      plans_(std::move(plans)),
      left_slot_(std::move(left)),
      right_slot_(std::move(right)) {
  start();
}

RangeJoin::~RangeJoin() { stop(); }

void RangeJoin::run() {
  if (request_.left().rows > 0) prepare();
  join(plan_walk());
}

/// The side as plan_ has it: from its slot, or made anew.
std::shared_ptr<PreparedPoints> RangeJoin::take(const Dataset& data, SideSlot* slot) {
  return take_side<PreparedPoints>(
      slot, plan_.get(), [this] { pool_.throw_if_stopped(); },
      [&] {
        ++indexed_;
        return prepare_points(pool_, shared_budget_, plan_, data);
      });
}

void RangeJoin::take_sides(bool any_direction) {
  left_ = right_ = nullptr;
  indexed_ = 0;
  plan_ = plans_->plan(request_, any_direction);
  left_ = take(request_.left(), left_slot_.get());
  const bool same = request_.self_join() || (left_slot_ && left_slot_ == right_slot_);
  right_ = same ? left_ : take(request_.right(), right_slot_.get());
}

/// Chooses how to join and indexes both sides.
void RangeJoin::prepare() {
  const Stopwatch watch;
  const auto known = plans_->known_plan(true);
  take_sides(known && left_slot_ && left_slot_->find(known.get()));
  if (left_->directions.extreme || right_->directions.extreme) take_sides(true);
  note([&](JoinStats& stats) {
    stats.strategy = plan_->index.strategy;
    stats.strategy.access_pattern = pattern_of(request_, plan_->index.strategy.index);
    stats.index_ms = watch.milliseconds();
    stats.indexed_sides = indexed_;
    stats.reused_sides = (left_ == right_ ? 1 : 2) - indexed_;
  });
}

JoinPlan RangeJoin::plan_walk() {
  JoinPlan plan{};
  plan.metric = request_.metric();
  plan.pairs = request_.pairs();
  plan.output = request_.output();
  plan.one_suffices = request_.one_suffices();
  plan.batch_entries = batch_entries();
  plan.sums = request_.sums();
  plan.min_points = request_.min_points();
  plan.borders = request_.borders();
  if (!left_) return plan;
  const IndexPlan& index = plan_->index;
  const std::uint32_t dims = request_.left().dims;
  if (index.directions) left_indexed_ = left_->directions.view(request_.left());
  // The index may be one for a larger radius.
  plan.threshold =
      index.directions ? index.threshold : make_threshold(index.metric, request_.eps());
  plan.reach = index.references.count > 0 ? index.reach : plan.threshold.reach;
  plan.cell_radius = index.cell_radius;
  plan.keys = request_.keys;
  plan.open_keys = index.open_keys;
  const auto sorted = static_cast<std::uint32_t>(index.order.sort_column);
  plan.sorts_key =
      index.order.sort_column != kNoColumn && sorted >= dims && sorted - dims < plan.keys.count;
  if (plan.sorts_key) plan.reach = plan.keys.reach[sorted - dims];
  plan.screen = make_screen_bounds(index.metric, plan.threshold.raw, dims);
  if (index.directions) {
    plan.threshold.raw = make_threshold(request_.metric(), request_.eps()).raw;
    const double sure_raw = make_threshold(index.metric, std::max(0.0, index.sure_eps)).raw;
    plan.screen.accept =
        index.sure_eps < 0 ? -1 : make_screen_bounds(index.metric, sure_raw, dims).accept;
  }
  plan.strategy = index.strategy;
  plan.strategy.access_pattern = pattern_of(request_, index.strategy.index);
  plan.layout = &plan_->layout;
  plan.kernel = choose_scan_kernel(index.metric, left_->index.scalar, dims, plan.strategy.screened);
  plan.is_self_join = request_.self_join();
  plan.left = &left_->index;
  plan.right = &right_->index;
  plan.left_points = &request_.left();
  plan.right_points = &request_.right();
  plan.left_indexed = &left_indexed_;
  return plan;
}

TilePlan RangeJoin::plan_tiles(const JoinPlan& plan) const {
  const std::uint32_t dims = request_.left().dims;
  const bool all_columns = plan.strategy.grid_dims == dims;
  return {.join = &plan,
          .left = &left_->tiles,
          .right = &right_->tiles,
          .checkpoints = plan_->checkpoints,
          .screen = choose_group_screen(),
          .reach = true_reach(plan_->index.eps, dims),
          .accept = all_columns ? plan.screen.accept : -1};
}

/// Walks the left index on all workers and puts the result into the queue.
void RangeJoin::join(const JoinPlan& plan) {
  add_buffers();
  mirrored_ = left_ && plan.mirrored();
  std::uint64_t total = 0;
  if (left_ && plan.strategy.index != IndexMethod::kTiles)
    total = walk_cells(plan, tools());
  else if (left_)
    total = walk_tiles(plan_tiles(plan), tools());
  if (plan.output == Output::kTotal) put_total(total);
}

ResultBatch RangeJoin::view(const BatchBuffer& buffer) const {
  ResultBatch batch = batch_of(buffer);
  if (left_ && request_.output() != Output::kTotal)
    batch.set_ids(left_->index.ids.data(), left_->index.ids.size(), right_->index.ids.data(),
                  right_->index.ids.size());
  batch.mirrored = mirrored_;
  return batch;
}

}  // namespace gpujoin::cpu
