#include "cpu/range_join.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "core/threshold.h"
#include "core/tile_screen.h"
#include "cpu/tile_walker.h"
#include "engine/stopwatch.h"

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
  if (request_.left.rows > 0) prepare();
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
    left_ = take(request_.left, left_slot_);
    right_ = request_.self_join ? left_ : take(request_.right, right_slot_);
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
  plan.metric = request_.metric;
  plan.pairs = request_.pairs;
  plan.output = request_.output;
  plan.batch_entries = batch_entries();
  if (!left_) return plan;
  const IndexPlan& index = plan_->index;
  const std::uint32_t dims = request_.left.dims;
  plan.threshold = index.threshold;
  plan.reach = index.reach;
  plan.screen = make_screen_bounds(index.metric, index.threshold.raw, dims);
  if (index.directions) {
    plan.threshold.raw = make_threshold(request_.metric, request_.eps).raw;
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
  if (left_)
    total = plan.strategy.index == IndexMethod::kTiles ? walk_tiles(plan) : walk_cells(plan);
  if (plan.output == Output::kTotal) put_total(total);
}

/// Returns the number of pairs.
std::uint64_t RangeJoin::walk_cells(const JoinPlan& plan) {
  std::deque<Walker> walkers;
  for (unsigned worker = 0; worker < pool_.size(); ++worker)
    walkers.emplace_back(plan, budget_, pool_, queue_, tally_);

  const std::uint64_t points = plan.left->points;
  const std::uint64_t stretch = stretch_of(points);
  pool_.parallel_for((points + stretch - 1) / stretch, [&](std::size_t item, unsigned worker) {
    walkers[worker].walk(static_cast<std::uint32_t>(item * stretch),
                         static_cast<std::uint32_t>(std::min(points, (item + 1) * stretch)));
  });
  if (plan.output == Output::kCountPerRow)
    for (std::uint64_t position = points; position < plan.left->data->rows; ++position)
      walkers[0].writer.add_count(static_cast<std::uint32_t>(position), 0);
  return flush_all(walkers);
}

/// Returns the number of pairs.
std::uint64_t RangeJoin::walk_tiles(const JoinPlan& plan) {
  const bool counts_rows = plan.output == Output::kCountPerRow;
  Buffer<std::uint64_t> counts(budget_, counts_rows ? plan.left->data->rows : 0);
  std::fill(counts.begin(), counts.end(), 0);
  const TilePlan tiles{
      &plan,        &left_->tiles,         &right_->tiles,
      plan_->looks, choose_group_screen(), true_reach(plan_->index.eps, request_.left.dims),
      counts.data()};
  std::deque<TileWalker> walkers;
  for (unsigned worker = 0; worker < pool_.size(); ++worker)
    walkers.emplace_back(tiles, budget_, pool_, queue_, tally_);

  // Where there are few tiles on the left, several workers share one.
  const std::uint64_t rows = tiles.left->tiles(), columns = tiles.right->tiles();
  const std::uint64_t parts =
      rows == 0 ? 0 : std::min<std::uint64_t>(columns, (64 * pool_.size() + rows - 1) / rows);
  pool_.parallel_for(rows * parts, [&](std::size_t item, unsigned worker) {
    const std::uint64_t part = item % parts;
    walkers[worker].walk(static_cast<std::uint32_t>(item / parts),
                         static_cast<std::uint32_t>(columns * part / parts),
                         static_cast<std::uint32_t>(columns * (part + 1) / parts));
  });
  for (std::uint64_t position = 0; position < counts.size(); ++position)
    walkers[0].writer.add_count(static_cast<std::uint32_t>(position), counts[position]);
  return flush_all(walkers);
}

ResultBatch RangeJoin::view(const BatchBuffer& buffer) const {
  ResultBatch batch = batch_of(buffer);
  if (left_) batch.left_ids = left_->index.ids.data();
  if (right_) batch.right_ids = right_->index.ids.data();
  batch.mirrored = mirrored_;
  return batch;
}

}  // namespace gpujoin::cpu
