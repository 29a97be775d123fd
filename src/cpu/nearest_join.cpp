#include "cpu/nearest_join.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <type_traits>
#include <utility>

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

NearestJoin::NearestJoin(const JoinRequest& request, std::shared_ptr<MemoryBudget> budget,
                         std::shared_ptr<KeptJoin> kept)
    : ThreadedJoin(request, std::move(budget)),
      kept_(std::move(kept)),
      index_(choose_nearest_index(request)) {
  const bool is_prepared = kept_ && kept_->right->find(kept_.get());
  if (is_prepared && request.left().rows == 1)
    run_at_once();
  else
    start();
}

NearestJoin::~NearestJoin() { stop(); }

void NearestJoin::run() {
  add_buffers();
  if (!request_.sides.has_pairs()) return;
  const Stopwatch watch;
  prepare();
  note_index(watch.milliseconds());
  if (index_ == NearestIndex::kBits) {
    const BitNearestPlan plan = plan_bits();
    join<BitNearestWalker>(
        plan, (plan.left->rows() + kGroupPoints - 1) / kGroupPoints,
        [](BitNearestWalker& walker, auto item) { walker.walk(static_cast<std::uint32_t>(item)); });
    return;
  }
  if (index_ == NearestIndex::kTiles) {
    if (right_->tiles.points == 0) return;
    const NearestTilePlan plan = plan_tiles();
    if (plan.left->tiles() == 1) return search_tiles(plan);
    join<NearestTileWalker>(plan, plan.left->tiles(), [](NearestTileWalker& walker, auto item) {
      walker.walk(static_cast<std::uint32_t>(item));
    });
    return;
  }
  if (right_->tree.points == 0) return;
  const NearestPlan plan = plan_tree();
  const std::uint64_t points = plan.left->points;
  const std::uint64_t stretch = tools().stretch_of(points) & ~std::uint64_t{kMostLanes - 1};
  join<NearestWalker>(
      plan, (points + stretch - 1) / stretch, [=](NearestWalker& walker, auto item) {
        walker.walk(static_cast<std::uint32_t>(item * stretch),
                    static_cast<std::uint32_t>(std::min(points, (item + 1) * stretch)));
      });
}

/// Indexes the sides. By cosine distance directions are indexed in the place of points; if one is
/// extreme, by a tree that nothing is kept of.
void NearestJoin::prepare() {
  const bool directions = request_.metric() == Metric::kCosine;
  if (directions && !request_.self_join()) {
    left_directions_ = find_directions(pool_, budget_, request_.left());
    left_indexed_ = left_directions_.view(request_.left());
  }
  if (index_ != NearestIndex::kTiles || !left_directions_.extreme) right_ = take_right(kept_.get());
  if (!right_ || (index_ == NearestIndex::kTiles && right_->directions.extreme)) {
    index_ = NearestIndex::kTree;
    right_ = nullptr;
    right_ = take_right(nullptr);
  }
  if (directions) right_indexed_ = right_->directions.view(request_.right());
  if (request_.self_join())
    left_indexed_ = right_indexed_;
  else
    prepare_left();
}

/// The right side, prepared by this join or by another one.
std::shared_ptr<const NearestSide> NearestJoin::take_right(KeptJoin* kept) {
  return take_side<NearestSide>(
      kept != nullptr ? kept->right.get() : nullptr, kept, [this] { pool_.throw_if_stopped(); },
      [&] {
        was_there_ = false;
        const bool knows_left = kept == nullptr && !request_.self_join();
        return prepare_nearest_side(pool_, shared_budget_, kept, request_, index_,
                                    knows_left ? &left_indexed_ : nullptr);
      });
}

/// Left points come in the order of the index, too: neighbours of neighbours are in the cache.
void NearestJoin::prepare_left() {
  if (index_ == NearestIndex::kBits)
    left_bits_ = build_bit_index(pool_, budget_, request_.left(), BitOrder::kOnes, {});
  else if (index_ == NearestIndex::kTiles)
    left_tiles_ = build_nearest_tiles(pool_, budget_, right_->frame, left_indexed_);
  else
    left_order_ =
        order_by_leaves(pool_, budget_, left_indexed_, right_->tree, request_.left_block());
}

bool NearestJoin::screened() const {
  return index_ == NearestIndex::kTiles || request_.left().dims > kMaxDirectDimensions;
}

void NearestJoin::note_index(double index_ms) {
  note([&](JoinStats& stats) {
    char(&reason)[sizeof stats.strategy.reason] = stats.strategy.reason;
    stats.strategy.sort_column = kNoColumn;
    stats.strategy.index = index_ == NearestIndex::kTiles || index_ == NearestIndex::kBits
                               ? IndexMethod::kTiles
                               : IndexMethod::kKdTree;
    if (index_ == NearestIndex::kBits) {
      std::snprintf(reason, sizeof reason, "rows with about as many ones first");
      std::snprintf(stats.instruction_set, sizeof stats.instruction_set, "%s",
                    bit_instruction_set());
    } else {
      stats.strategy.screened = screened();
      if (index_ == NearestIndex::kTiles)
        std::snprintf(reason, sizeof reason, "%u of %u columns%s", right_->frame.columns,
                      right_->frame.dims, right_->frame.directions > 0 ? ", turned" : "");
      else
        std::snprintf(reason, sizeof reason, "%u leaves", right_->tree.leaves());
    }
    stats.index_ms = index_ms;
    stats.reused_sides = was_there_ ? 1 : 0;
    stats.indexed_sides = (request_.self_join() ? 1 : 2) - stats.reused_sides;
  });
}

BitNearestPlan NearestJoin::plan_bits() const {
  return {.left = request_.self_join() ? &right_->bits : &left_bits_,
          .right = &right_->bits,
          .scan = choose_bit_scan(),
          .metric = request_.metric(),
          .radius = request_.metric() == Metric::kHamming
                        ? static_cast<double>(most_differing_bits(request_))
                        : request_.eps(),
          .without_itself = without_itself(),
          .k = request_.neighbors()};
}

NearestTilePlan NearestJoin::plan_tiles() const {
  const double most_raw = make_threshold(request_.metric(), request_.eps()).raw;
  return {.frame = &right_->frame,
          .left = request_.self_join() ? &right_->tiles : &left_tiles_,
          .right = &right_->tiles,
          .left_points = &request_.left(),
          .right_points = &request_.right(),
          .left_indexed = &left_indexed_,
          .right_indexed = &right_indexed_,
          .metric = request_.metric(),
          .bounds = NearestBounds(request_.metric(), right_->frame.dims, most_raw,
                                  right_->frame.screen.scale),
          .without_itself = without_itself(),
          .most_raw = most_raw,
          .k = request_.neighbors(),
          .screen = choose_group_screen(),
          .byte_screen = choose_byte_screen()};
}

NearestPlan NearestJoin::plan_tree() const {
  NearestPlan plan{};
  plan.left = request_.self_join() ? &right_->tree : &left_order_;
  plan.right = &right_->tree;
  plan.least_ids = right_->least_ids.data();
  plan.left_points = &request_.left();
  plan.right_points = &request_.right();
  plan.left_indexed = &left_indexed_;
  plan.metric = request_.metric();
  plan.directions = request_.metric() == Metric::kCosine;
  plan.any_direction = left_directions_.extreme || right_->directions.extreme;
  plan.indexed_metric = plan.directions ? Metric::kL2 : plan.metric;
  plan.screened = screened();
  plan.without_itself = without_itself();
  plan.most_raw = make_threshold(plan.metric, request_.eps()).raw;
  plan.k = request_.neighbors();
  plan.kernel = choose_scan_kernel(plan.indexed_metric, right_->tree.scalar, request_.left().dims,
                                   plan.screened);
  if (index_ == NearestIndex::kLaneTree)
    plan.lanes = choose_lane_kernel(plan.indexed_metric, request_.left().dims);
  return plan;
}

/// A walker for each worker, with its account of its work.
template <class Walker>
struct NearestJoin::Walkers {
  template <class Plan>
  Walkers(NearestJoin& join, const Plan& plan) {
    for (unsigned worker = 0; worker < join.pool_.size(); ++worker) {
      progress.emplace_back(join.tally_);
      const BatchWriter writer(join.queue_, progress.back(), join.batch_entries());
      if constexpr (std::is_same_v<Walker, NearestWalker>)
        walkers.emplace_back(plan, join.budget_, writer, progress.back());
      else
        walkers.emplace_back(plan, join.budget_, join.pool_, writer, progress.back());
    }
  }

  std::deque<WalkProgress> progress;
  std::deque<Walker> walkers;
};

/// Workers share the right tiles where there is one left tile.
void NearestJoin::search_tiles(NearestTilePlan plan) {
  BytePoint point;
  if (plan.left->points == 1 && !request_.self_join()) {
    point = make_byte_point(budget_, *plan.left);
    plan.left_point = &point;
    plan.right_bytes = &right_->byte_tiles(pool_);
  }
  Walkers<NearestTileWalker> made(*this, plan);
  std::deque<NearestTileWalker>& walkers = made.walkers;
  tally_.work.begin_walk(1);
  pool_.parallel_for(walkers.size(), [&](std::size_t share, unsigned) {
    walkers[share].search(0, static_cast<std::uint32_t>(share),
                          static_cast<std::uint32_t>(walkers.size()));
  });
  for (std::size_t share = 1; share < walkers.size(); ++share) walkers[0].absorb(walkers[share]);
  walkers[0].write_all();
  walkers[0].finish();
  tally_.work.add(1);
}

/// Calls walk(walker, item) for each item, on all workers. Each worker has its own walker.
template <class Walker, class Plan, class Walk>
void NearestJoin::join(const Plan& plan, std::uint64_t items, const Walk& walk) {
  Walkers<Walker> made(*this, plan);
  std::deque<Walker>& walkers = made.walkers;
  walk_tasks(
      tools(), walkers, items, [](std::uint64_t) { return std::uint64_t{1}; }, walk);
  for (Walker& walker : walkers) walker.finish();
}

ResultBatch NearestJoin::view(const BatchBuffer& buffer) const {
  const auto set_ids = [](ResultBatch& batch, const auto& left, const auto& right) {
    batch.set_ids(left.ids.data(), left.ids.size(), right.ids.data(), right.ids.size());
  };
  ResultBatch batch = batch_of(buffer);
  const bool own = request_.self_join();
  if (index_ == NearestIndex::kBits)
    set_ids(batch, (own ? right_->bits : left_bits_).names, right_->bits.names);
  else if (index_ == NearestIndex::kTiles)
    set_ids(batch, own ? right_->tiles : left_tiles_, right_->tiles);
  else if (own)
    set_ids(batch, right_->tree, right_->tree);
  else
    set_ids(batch, left_order_, right_->tree);
  return batch;
}

}  // namespace gpujoin::cpu
