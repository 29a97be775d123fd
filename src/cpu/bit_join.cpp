#include "cpu/bit_join.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "engine/stopwatch.h"
#include "engine/strategy/choose_strategy.h"

namespace gpujoin::cpu {

namespace {

/// Passes over segments name rows as they are.
BitOrder order_of(const JoinRequest& request, IndexMethod method) {
  if (request.metric() == Metric::kJaccard) return BitOrder::kOnes;
  return request.keys.count > 0 && method != IndexMethod::kPigeonhole ? BitOrder::kKey
                                                                      : BitOrder::kRows;
}

}  // namespace

std::uint64_t bit_row_bytes(const JoinRequest& request) {
  const Dataset& data = request.left().rows > 0 ? request.left() : request.right();
  return bit_index_row_bytes(data, order_of(request, IndexMethod::kTiles));
}

BitJoin::BitJoin(const JoinRequest& request, std::shared_ptr<MemoryBudget> budget)
    : ThreadedJoin(request, std::move(budget)) {
  start();
}

BitJoin::~BitJoin() { stop(); }

void BitJoin::run() {
  const bool any = request_.left().rows > 0;
  if (any) prepare();
  add_buffers();
  std::uint64_t total = 0;
  if (any) {
    plan_walk();
    const JoinPlan join = plan_join();
    mirrored_ = join.mirrored();
    TilePlan tiles{};
    tiles.join = &join;
    tiles.left = &left_tiles_;
    tiles.right = request_.self_join() ? &left_tiles_ : &right_tiles_;
    tiles.bits = &plan_;
    total = walk_tiles(tiles, tools());
  }
  if (request_.output() == Output::kTotal) put_total(total);
}

/// Chooses how to join and indexes both sides.
void BitJoin::prepare() {
  const Stopwatch watch;
  BitStrategy chosen = choose_bit_strategy(request_);
  strategy_ = chosen.strategy;
  const BitOrder order = order_of(request_, strategy_.index);
  left_ = build_bit_index(pool_, budget_, request_.left(), order, request_.keys);
  if (!request_.self_join())
    right_ = build_bit_index(pool_, budget_, request_.right(), order, request_.keys);
  left_tiles_.points = left_.rows();
  right_tiles_.points = right_.rows();
  plan_.left = &left_;
  plan_.right = request_.self_join() ? &left_ : &right_;
  plan_.most = most_differing_bits(request_);
  if (order == BitOrder::kOnes) plan_.most_of_ones = most_of_all_ones(plan_, request_.eps());
  plan_.scan = choose_bit_scan();
  plan_.segments = std::move(chosen.segments);
  note([&](JoinStats& stats) {
    stats.strategy = strategy_;
    std::snprintf(stats.instruction_set, sizeof stats.instruction_set, "%s", bit_instruction_set());
    stats.index_ms = watch.milliseconds();
    stats.indexed_sides = request_.self_join() ? 1 : 2;
  });
}

/// Without memory for passes every pair is compared.
void BitJoin::plan_walk() {
  plan_passes(&plan_, pool_.size(), memory_for_passes());
  if (strategy_.index != IndexMethod::kPigeonhole || !plan_.passes.empty()) return;
  strategy_.index = IndexMethod::kTiles;
  std::snprintf(strategy_.reason, sizeof strategy_.reason, "every pair, for want of memory");
  note([&](JoinStats& stats) { stats.strategy = strategy_; });
}

/// Returns half of the memory that is left, since sinks need some, too; 0: there is no limit.
std::uint64_t BitJoin::memory_for_passes() const {
  const std::uint64_t left = budget_.left();
  return left == MemoryBudget::kUnlimited ? 0 : std::max<std::uint64_t>(1, left / 2);
}

JoinPlan BitJoin::plan_join() const {
  JoinPlan plan{};
  plan.metric = request_.metric();
  plan.pairs = request_.pairs();
  plan.output = request_.output();
  plan.one_suffices = request_.one_suffices();
  plan.threshold = make_threshold(request_.metric(), request_.eps());
  plan.strategy = strategy_;
  plan.is_self_join = request_.self_join();
  plan.left = &left_.names;
  plan.right = request_.self_join() ? &left_.names : &right_.names;
  plan.left_points = &request_.left();
  plan.right_points = &request_.right();
  plan.left_indexed = &request_.left();
  plan.batch_entries = batch_entries();
  plan.sums = request_.sums();
  plan.keys = request_.keys;
  plan.min_points = request_.min_points();
  return plan;
}

ResultBatch BitJoin::view(const BatchBuffer& buffer) const {
  ResultBatch batch = batch_of(buffer);
  const GridIndex& left = left_.names;
  const GridIndex& right = request_.self_join() ? left : right_.names;
  if (request_.left().rows > 0 && request_.output() != Output::kTotal)
    batch.set_ids(left.ids.data(), left.ids.size(), right.ids.data(), right.ids.size());
  batch.mirrored = mirrored_;
  return batch;
}

}  // namespace gpujoin::cpu
