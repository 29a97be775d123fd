#include "cpu/nearest_join.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <type_traits>

#include "core/threshold.h"
#include "engine/stopwatch.h"
#include "engine/strategy/bit_strategy.h"
#include "engine/strategy/choose_strategy.h"

namespace gpujoin::cpu {

std::uint64_t nearest_row_bytes(const JoinRequest& request) {
  if (is_of_bits(request.metric())) return bit_index_row_bytes(request.left(), BitOrder::kOnes);
  constexpr std::uint64_t kNamed = 4 + 8, kSorting = 2 * 16, kThresholds = 40, kLeafPoints = 16;
  const std::uint64_t dims = request.left().dims;
  const std::uint64_t directions = request.metric() == Metric::kCosine ? sizeof(float) * dims : 0;
  const std::uint64_t tree =
      point_bytes(request.left()) +
      2 * 2 * (2 * sizeof(double) * dims + sizeof(std::int64_t)) / kLeafPoints;
  const std::uint64_t tiles = sizeof(float) * (dims + kThresholds) + 2 * sizeof(double);
  return kNamed + kSorting + directions + std::max(tree, tiles);
}

NearestJoin::NearestJoin(const JoinRequest& request) : ThreadedJoin(request) { start(); }

NearestJoin::NearestJoin(const JoinRequest& request, std::shared_ptr<MemoryBudget> budget)
    : ThreadedJoin(request, std::move(budget)) {
  start();
}

NearestJoin::~NearestJoin() { stop(); }

void NearestJoin::run() {
  add_buffers();
  if (!request_.sides.has_pairs()) return;
  if (is_of_bits(request_.metric())) return run_bits();
  const Stopwatch watch;
  find_directions();
  by_tiles_ = wants_tiles();
  if (by_tiles_) {
    index_tiles();
    note_index(IndexMethod::kTiles, watch.milliseconds());
    if (right_tiles_.points == 0) return;
    const NearestTilePlan plan = plan_tiles();
    join<NearestTileWalker>(plan, plan.left->tiles(), [](NearestTileWalker& walker, auto item) {
      walker.walk(static_cast<std::uint32_t>(item));
    });
    return;
  }
  index_trees();
  note_index(IndexMethod::kKdTree, watch.milliseconds());
  if (right_tree_.points == 0) return;
  const NearestPlan plan = plan_tree();
  const std::uint64_t points = plan.left->points;
  const std::uint64_t stretch = tools().stretch_of(points) & ~std::uint64_t{kMostLanes - 1};
  join<NearestWalker>(
      plan, (points + stretch - 1) / stretch, [=](NearestWalker& walker, auto item) {
        walker.walk(static_cast<std::uint32_t>(item * stretch),
                    static_cast<std::uint32_t>(std::min(points, (item + 1) * stretch)));
      });
}

void NearestJoin::run_bits() {
  const Stopwatch watch;
  right_bits_ = build_bit_index(pool_, budget_, request_.right(), BitOrder::kOnes, {});
  if (!request_.self_join())
    left_bits_ = build_bit_index(pool_, budget_, request_.left(), BitOrder::kOnes, {});
  note([&](JoinStats& stats) {
    stats.strategy.index = IndexMethod::kTiles;
    stats.strategy.sort_column = kNoColumn;
    std::snprintf(stats.strategy.reason, sizeof stats.strategy.reason,
                  "rows with about as many ones first");
    std::snprintf(stats.instruction_set, sizeof stats.instruction_set, "%s", bit_instruction_set());
    stats.index_ms = watch.milliseconds();
    stats.indexed_sides = request_.self_join() ? 1 : 2;
  });
  const BitNearestPlan plan = {.left = request_.self_join() ? &right_bits_ : &left_bits_,
                               .right = &right_bits_,
                               .scan = choose_bit_scan(),
                               .most = most_differing_bits(request_),
                               .without_itself = without_itself(),
                               .k = request_.neighbors()};
  join<BitNearestWalker>(
      plan, (plan.left->rows() + kGroupPoints - 1) / kGroupPoints,
      [](BitNearestWalker& walker, auto item) { walker.walk(static_cast<std::uint32_t>(item)); });
}

/// By cosine distance directions are indexed in the place of points.
void NearestJoin::find_directions() {
  if (request_.metric() != Metric::kCosine) return;
  const auto index_of = [&](const Dataset& points, Directions& directions) {
    directions = cpu::find_directions(pool_, budget_, points);
    return directions.view(points);
  };
  right_indexed_ = index_of(request_.right(), right_directions_);
  left_indexed_ =
      request_.self_join() ? right_indexed_ : index_of(request_.left(), left_directions_);
}

/// Where a tree leaves most points to be looked at. Screens are of squared distances.
bool NearestJoin::wants_tiles() const {
  constexpr std::uint32_t kTileDims = 12;
  const Metric metric = request_.metric();
  if (metric != Metric::kL2 && metric != Metric::kCosine) return false;
  if (left_directions_.extreme || right_directions_.extreme) return false;
  const IndexMethod asked = request_.knobs.index;
  return asked == IndexMethod::kTiles ||
         (asked == IndexMethod::kAuto && request_.left().dims >= kTileDims);
}

bool NearestJoin::screened() const {
  return by_tiles_ || request_.left().dims > kMaxDirectDimensions;
}

/// Where left points of one time are so many that neighbours of theirs are the same.
bool NearestJoin::wants_lanes() const {
  constexpr std::uint64_t kRightPerLeft = 8;
  std::uint64_t left = request_.left().rows;
  if (request_.left_block() > 0) left = std::min(left, request_.left_block());
  return !screened() && request_.metric() != Metric::kCosine &&
         request_.neighbors() <= kMostLaneNeighbors &&
         left >= request_.right().rows / kRightPerLeft;
}

void NearestJoin::index_tiles() {
  const Sides indexed = request_.sides.with_rows(left_indexed_, right_indexed_);
  frame_ = choose_nearest_frame(pool_, budget_, request_, indexed);
  right_tiles_ = build_nearest_tiles(pool_, budget_, frame_, right_indexed_);
  if (!request_.self_join())
    left_tiles_ = build_nearest_tiles(pool_, budget_, frame_, left_indexed_);
}

/// Left points are looked for leaf by leaf, too: neighbours of neighbours are in the cache.
void NearestJoin::index_trees() {
  const std::uint32_t leaf_tiles =
      wants_lanes() ? lane_leaf_tiles(request_.right().dims) : kLeafTiles;
  right_tree_ = build_kd_tree(pool_, budget_, right_indexed_, leaf_tiles);
  right_least_ids_ = least_ids(pool_, budget_, right_tree_);
  if (!request_.self_join())
    left_order_ =
        order_by_leaves(pool_, budget_, left_indexed_, right_tree_, request_.left_block());
}

void NearestJoin::note_index(IndexMethod method, double index_ms) {
  note([&](JoinStats& stats) {
    stats.strategy.index = method;
    stats.strategy.sort_column = kNoColumn;
    stats.strategy.screened = screened();
    if (by_tiles_)
      std::snprintf(stats.strategy.reason, sizeof stats.strategy.reason, "%u of %u columns%s",
                    frame_.columns, frame_.dims, frame_.directions > 0 ? ", turned" : "");
    else
      std::snprintf(stats.strategy.reason, sizeof stats.strategy.reason, "%u leaves",
                    right_tree_.leaves());
    stats.index_ms = index_ms;
    stats.indexed_sides = 1;
  });
}

NearestTilePlan NearestJoin::plan_tiles() const {
  const double most_raw = make_threshold(request_.metric(), request_.eps()).raw;
  return {.frame = &frame_,
          .left = request_.self_join() ? &right_tiles_ : &left_tiles_,
          .right = &right_tiles_,
          .left_points = &request_.left(),
          .right_points = &request_.right(),
          .left_indexed = &left_indexed_,
          .right_indexed = &right_indexed_,
          .metric = request_.metric(),
          .bounds = NearestBounds(request_.metric(), frame_.dims, most_raw, frame_.screen.scale),
          .without_itself = without_itself(),
          .most_raw = most_raw,
          .k = request_.neighbors(),
          .screen = choose_group_screen()};
}

NearestPlan NearestJoin::plan_tree() const {
  NearestPlan plan{};
  plan.left = request_.self_join() ? &right_tree_ : &left_order_;
  plan.right = &right_tree_;
  plan.least_ids = right_least_ids_.data();
  plan.left_points = &request_.left();
  plan.right_points = &request_.right();
  plan.left_indexed = &left_indexed_;
  plan.metric = request_.metric();
  plan.directions = request_.metric() == Metric::kCosine;
  plan.any_direction = left_directions_.extreme || right_directions_.extreme;
  plan.indexed_metric = plan.directions ? Metric::kL2 : plan.metric;
  plan.screened = screened();
  plan.without_itself = without_itself();
  plan.most_raw = make_threshold(plan.metric, request_.eps()).raw;
  plan.k = request_.neighbors();
  plan.kernel = choose_scan_kernel(plan.indexed_metric, right_tree_.scalar, request_.left().dims,
                                   plan.screened);
  if (wants_lanes()) plan.lanes = choose_lane_kernel(plan.indexed_metric, request_.left().dims);
  return plan;
}

/// Walks so many items on all workers, each with a walker of its own: walk(walker, item).
template <class Walker, class Plan, class Walk>
void NearestJoin::join(const Plan& plan, std::uint64_t items, const Walk& walk) {
  std::deque<WalkProgress> progress;
  std::deque<Walker> walkers;
  for (unsigned worker = 0; worker < pool_.size(); ++worker) {
    progress.emplace_back(tally_);
    const BatchWriter writer(queue_, progress.back(), batch_entries());
    if constexpr (std::is_same_v<Walker, NearestWalker>)
      walkers.emplace_back(plan, budget_, writer, progress.back());
    else
      walkers.emplace_back(plan, budget_, pool_, writer, progress.back());
  }
  walk_tasks(
      tools(), walkers, items, [](std::uint64_t) { return std::uint64_t{1}; }, walk);
  for (Walker& walker : walkers) walker.finish();
}

ResultBatch NearestJoin::view(const BatchBuffer& buffer) const {
  const auto set_ids = [](ResultBatch& batch, const auto& left, const auto& right) {
    batch.set_ids(left.ids.data(), left.ids.size(), right.ids.data(), right.ids.size());
  };
  ResultBatch batch = batch_of(buffer);
  if (is_of_bits(request_.metric()))
    set_ids(batch, (request_.self_join() ? right_bits_ : left_bits_).names, right_bits_.names);
  else if (by_tiles_)
    set_ids(batch, request_.self_join() ? right_tiles_ : left_tiles_, right_tiles_);
  else
    set_ids(batch, request_.self_join() ? right_tree_ : left_order_, right_tree_);
  return batch;
}

}  // namespace gpujoin::cpu
