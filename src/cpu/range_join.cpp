#include "cpu/range_join.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/threshold.h"
#include "core/tile_screen.h"
#include "cpu/tile_walker.h"
#include "cpu/walker.h"
#include "engine/reference_points.h"
#include "engine/stopwatch.h"

namespace gpujoin::cpu {

RangeJoin::RangeJoin(const JoinRequest& request) : ThreadedJoin(request), indexed_(request) {
  start();
}

RangeJoin::~RangeJoin() { stop(); }

void RangeJoin::run() {
  IndexLayout layout{};
  join(prepare(layout));
}

/// Indexes directions in the place of points.
void RangeJoin::index_directions() {
  left_directions_ = find_directions(pool_, budget_, request_.left);
  if (!request_.self_join) right_directions_ = find_directions(pool_, budget_, request_.right);
  indexed_ = join_of_directions(request_, left_directions_.view(request_.left),
                                right_directions_.view(request_.right));
  if (left_directions_.faint || right_directions_.faint) indexed_.eps = kAnyDirection;
}

/// The thresholds of the index and of its screen.
void RangeJoin::set_thresholds(JoinPlan& plan) const {
  plan.threshold = make_threshold(indexed_.metric, indexed_.eps);
  plan.screen = make_screen_bounds(indexed_.metric, plan.threshold.raw, indexed_.left.dims);
  if (request_.metric != Metric::kCosine) return;
  plan.threshold.raw = make_threshold(request_.metric, request_.eps).raw;
  plan.screen.accept = -1;  // directions decide nothing
}

/// Chooses how to join and builds the indexes.
JoinPlan RangeJoin::prepare(IndexLayout& layout) {
  const Stopwatch watch;
  if (request_.metric == Metric::kCosine) index_directions();
  const Dataset& left = indexed_.left;
  JoinPlan plan{};
  plan.metric = request_.metric;
  plan.pairs = request_.pairs;
  plan.output = request_.output;
  plan.layout = &layout;
  plan.left = &left_;
  plan.right = request_.self_join ? &left_ : &right_;
  plan.left_points = &request_.left;
  plan.right_points = request_.self_join ? &request_.left : &request_.right;
  plan.batch_entries = batch_entries();
  left_.data = &indexed_.left;
  right_.data = &indexed_.right;
  if (left.rows == 0) return plan;

  set_thresholds(plan);
  plan.strategy = choose_strategy(request_);
  plan.kernel = choose_scan_kernel(indexed_.metric, left.scalar, left.dims, plan.strategy.screened);
  mirrored_ = plan.mirrored();
  build_indexes(plan, layout);

  note([&](JoinStats& stats) {
    stats.strategy = plan.strategy;
    stats.index_ms = watch.milliseconds();
  });
  return plan;
}

/// Sums in column order need the order of columns alone.
ScreenFrame RangeJoin::frame_of(const Strategy& strategy) const {
  if (strategy.screened) return choose_screen_frame(indexed_, strategy.reorder_dimensions);
  ScreenFrame frame;
  frame.order.resize(indexed_.left.dims);
  std::iota(frame.order.begin(), frame.order.end(), 0u);
  return frame;
}

void RangeJoin::build_indexes(JoinPlan& plan, IndexLayout& layout) {
  const Dataset& left = indexed_.left;
  const Dataset* const right =
      request_.self_join || indexed_.right.rows == 0 ? nullptr : &indexed_.right;
  const ReferencePoints references = place_reference_points(indexed_, plan.strategy);
  plan.reach = references.count == 0
                   ? plan.threshold.reach
                   : reference_reach(indexed_.eps, left.dims, references.frame, false);
  IndexColumns left_columns = make_index_columns(pool_, budget_, left, references);
  IndexColumns right_columns;
  if (right != nullptr) right_columns = make_index_columns(pool_, budget_, *right, references);
  const bool tiles = plan.strategy.index == IndexMethod::kTiles;
  // Tiles are sorted along a curve through cells as small as can be.
  layout.order = make_order(pool_, plan.strategy, tiles ? 0 : plan.reach, left_columns,
                            right != nullptr ? &right_columns : nullptr);
  layout.order_only = tiles;
  layout.frame = frame_of(plan.strategy);
  left_ = build_index(pool_, budget_, layout, std::move(left_columns));
  if (right != nullptr) right_ = build_index(pool_, budget_, layout, std::move(right_columns));
  if (!tiles) return;
  looks_ = make_looks(left.dims, plan.strategy.short_circuit);
  ScreenRadius radius = make_screen_radius(indexed_.eps, left.dims, layout.frame.scale);
  if (request_.metric == Metric::kCosine) radius.accept = -1;  // directions never decide
  left_tiles_ = build_tiles(pool_, budget_, layout, left_, looks_, radius);
  if (right != nullptr) right_tiles_ = build_tiles(pool_, budget_, layout, right_, looks_, radius);
}

/// Walks the left index on all workers and puts the result into the queue.
void RangeJoin::join(const JoinPlan& plan) {
  add_buffers();
  std::uint64_t total = 0;
  if (plan.left->data->rows > 0 && plan.strategy.index != IndexMethod::kTiles)
    total = walk_cells(plan, tools());
  else if (plan.left->data->rows > 0)
    total =
        walk_tiles({&plan, &left_tiles_, request_.self_join ? &left_tiles_ : &right_tiles_, looks_,
                    choose_group_screen(), true_reach(indexed_.eps, request_.left.dims)},
                   tools());
  if (plan.output == Output::kTotal) put_total(total);
}

ResultBatch RangeJoin::view(const BatchBuffer& buffer) const {
  ResultBatch batch = batch_of(buffer);
  batch.left_ids = left_.ids.data();
  batch.right_ids = request_.self_join ? left_.ids.data() : right_.ids.data();
  batch.mirrored = mirrored_;
  return batch;
}

}  // namespace gpujoin::cpu
