#include "engine/joins/topk_scan.h"

#include <algorithm>
#include <utility>

#include "engine/joins/score_bounds.h"
#include "engine/stopwatch.h"

namespace gpujoin {

TopkScan::TopkScan(const JoinRequest& request, const OpenJoin& pairs_join)
    : request_(request),
      by_distance_(request.top().scoring.function == ScoreFunction::kDistance),
      unordered_(request.orders_pairs()),
      budget_(request.resources.memory_limit),
      top_(budget_, request_, method_of(request.knobs.topk_method)),
      held_(budget_.used()),
      pairs_join_(pairs_join(request_of_pairs())) {}

/// Its batches name points by rows, by which scores and ids are found.
JoinRequest TopkScan::request_of_pairs() const {
  JoinRequest request =
      request_.asking(by_distance_ ? Output::pairs_with_distances() : Output::pairs());
  const Dataset left = unnamed(request.left());
  request.sides = request.self_join() ? Sides::one(left, PairSelection::kUnordered)
                                      : Sides::two(left, unnamed(request.right()));
  request.knobs.batch_pairs = 0;
  request.resources.memory_limit = budget_.limit_within();
  return request;
}

Status TopkScan::next_batch(ResultBatch* batch) {
  if (pairs_join_ != nullptr)
    if (Status status = collect_all(); !status.ok()) return status;
  if (!batches_) {
    const Stopwatch watch;
    top_.finish();
    collect_ms_ += watch.milliseconds();
    batches_.emplace(budget_, request_, top_);
  }
  if (!batches_->next(batch)) return {StatusCode::kEnd};
  return {};
}

Status TopkScan::collect_all() {
  if (!by_distance_ && !left_range_) {
    left_range_ = score_range(request_.left());
    right_range_ = request_.self_join() ? left_range_ : score_range(request_.right());
  }
  for (;;) {
    ResultBatch batch{};
    Status status = pairs_join_->next_batch(&batch);
    if (status.code == StatusCode::kEnd) break;
    if (!status.ok()) return status;
    const Stopwatch watch;
    by_distance_ ? collect_distances(batch) : collect(batch);
    collect_ms_ += watch.milliseconds();
    if (request_.resources.are_interrupted()) return {StatusCode::kInterrupted};
  }
  pairs_join_->stats(&pairs_stats_);
  pairs_join_.reset();
  return {};
}

void TopkScan::collect(const ResultBatch& batch) {
  const bool transposed = batch.transposed;
  const std::int64_t* const rows = transposed ? batch.right_ids : batch.left_ids;
  const std::int64_t* const neighbors = transposed ? batch.left_ids : batch.right_ids;
  const double* const scores = transposed ? request_.right().scores : request_.left().scores;
  for (std::uint64_t i = 0; i < batch.row_count; ++i) {
    const auto row = static_cast<std::uint64_t>(rows[batch.rows[i]]);
    const Interval own{scores[row], scores[row]};
    const KeyRange keys = transposed ? reachable_keys(request_, *left_range_, own)
                                     : reachable_keys(request_, own, *right_range_);
    if (keys.best < top_.least_key()) continue;
    for (std::uint64_t at = batch.entry(i); at < batch.entry(i + 1); ++at) {
      const auto neighbor = static_cast<std::uint64_t>(neighbors[batch.neighbors[at]]);
      transposed ? offer(neighbor, row) : offer(row, neighbor);
    }
  }
}

void TopkScan::offer(std::uint64_t left_row, std::uint64_t right_row) {
  const Scoring& scoring = request_.top().scoring;
  double first = request_.left().scores[left_row], second = request_.right().scores[right_row];
  // Ids are looked up only where the score depends on them.
  if (unordered_ && scoring.weights[0] != scoring.weights[1] &&
      !comes_first(id_of(request_.left(), left_row), first, id_of(request_.right(), right_row),
                   second))
    std::swap(first, second);
  const std::uint64_t key = score_key(scoring.lowest_first, pair_score(scoring, first, second));
  if (key >= top_.least_key()) add(key, left_row, right_row);
}

void TopkScan::collect_distances(const ResultBatch& batch) {
  const std::int64_t* const rows = batch.transposed ? batch.right_ids : batch.left_ids;
  const std::int64_t* const neighbors = batch.transposed ? batch.left_ids : batch.right_ids;
  for (std::uint64_t i = 0; i < batch.row_count; ++i) {
    const auto row = static_cast<std::uint64_t>(rows[batch.rows[i]]);
    for (std::uint64_t at = batch.entry(i); at < batch.entry(i + 1); ++at) {
      const std::uint64_t key = score_key(request_.top().scoring.lowest_first, batch.distances[at]);
      if (key < top_.least_key()) continue;
      const auto neighbor = static_cast<std::uint64_t>(neighbors[batch.neighbors[at]]);
      batch.transposed ? add(key, neighbor, row) : add(key, row, neighbor);
    }
  }
}

void TopkScan::add(std::uint64_t key, std::uint64_t left_row, std::uint64_t right_row) {
  const std::int64_t left_id = id_of(request_.left(), left_row);
  const std::int64_t right_id = id_of(request_.right(), right_row);
  top_.add(rank_of_pair(key, left_id, right_id, unordered_));
}

void TopkScan::stats(JoinStats* stats) const {
  if (pairs_join_ != nullptr)
    pairs_join_->stats(stats);
  else
    *stats = pairs_stats_;
  stats->pairs = batches_ ? batches_->pairs() : 0;
  stats->batches = batches_ ? batches_->batches() : 0;
  stats->memory_peak = std::max(budget_.peak(), held_ + stats->memory_peak);
  stats->topk_method = method_of(request_.knobs.topk_method);
  stats->topk_rounds = 1;
  stats->join_ms += collect_ms_;
}

}  // namespace gpujoin
