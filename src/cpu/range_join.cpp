#include "cpu/range_join.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <new>
#include <utility>

#include "core/threshold.h"

namespace gpujoin::cpu {
namespace {

constexpr std::uint64_t kDefaultBatchEntries = 1 << 16;
constexpr std::uint64_t kMaxBatchEntries = 1 << 24;

double milliseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

Status status_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const MemoryLimitExceeded& e) {
    return make_status(StatusCode::kMemoryLimit,
                       "Raise gpujoin.host_memory_limit or join fewer rows.",
                       "the join needs more than its memory limit: at least %llu MB beyond the "
                       "data, of %llu MB left",
                       static_cast<unsigned long long>((e.needed_bytes >> 20) + 1),
                       static_cast<unsigned long long>(e.limit_bytes >> 20));
  } catch (const std::bad_alloc&) {
    return make_status(StatusCode::kOutOfMemory,
                       "Lower gpujoin.host_memory_limit, or join fewer rows at a time.",
                       "out of memory in the CPU engine");
  } catch (const std::exception& e) {
    return make_status(StatusCode::kInternal, nullptr, "the CPU engine failed: %s", e.what());
  } catch (...) {
    return make_status(StatusCode::kInternal, nullptr, "the CPU engine failed");
  }
}

}  // namespace

RangeJoin::RangeJoin(const JoinRequest& request)
    : request_(request), budget_(request.memory_limit), pool_(request.threads) {
  stats_.left_rows = request.left.rows;
  stats_.right_rows = request.self_join ? request.left.rows : request.right.rows;
  stats_.threads = pool_.size();
  std::snprintf(stats_.instruction_set, sizeof stats_.instruction_set, "%s", instruction_set());
  driver_ = start_thread([this] { run(); });
}

RangeJoin::~RangeJoin() {
  pool_.stop();
  queue_.stop();
  driver_.join();
}

void RangeJoin::run() {
  try {
    IndexLayout layout{};
    join(prepare(layout));
  } catch (...) {
    error_ = std::current_exception();
  }
  queue_.finish();
}

/// Chooses how to join and builds the indexes.
JoinPlan RangeJoin::prepare(IndexLayout& layout) {
  const auto begin = std::chrono::steady_clock::now();
  const Dataset& left = request_.left;
  const Dataset* const right =
      request_.self_join || request_.right.rows == 0 ? nullptr : &request_.right;
  JoinPlan plan{};
  plan.metric = request_.metric;
  plan.pairs = request_.pairs;
  plan.output = request_.output;
  plan.layout = &layout;
  plan.left = &left_;
  plan.right = request_.self_join ? &left_ : &right_;
  plan.batch_entries =
      std::min(request_.knobs.batch_pairs > 0 ? request_.knobs.batch_pairs : kDefaultBatchEntries,
               kMaxBatchEntries);
  left_.data = &request_.left;
  right_.data = &request_.right;
  if (left.rows == 0) return plan;

  plan.threshold = make_threshold(request_.metric, request_.eps);
  plan.screen = make_screen_bounds(request_.metric, plan.threshold.raw, left.dims);
  plan.strategy = choose_strategy(request_);
  plan.kernel = choose_scan_kernel(request_.metric, left.scalar, left.dims, plan.strategy.screened);
  mirrored_ = plan.mirrored();
  layout = make_layout(pool_, plan.strategy, plan.threshold.reach, left, right);
  left_ = build_index(pool_, budget_, layout, left);
  if (right != nullptr) right_ = build_index(pool_, budget_, layout, *right);

  const std::lock_guard lock(stats_mutex_);
  stats_.strategy = plan.strategy;
  stats_.index_ms = milliseconds_since(begin);
  return plan;
}

/// Walks the left index on all workers and puts the result into the queue.
void RangeJoin::join(const JoinPlan& plan) {
  const auto begin = std::chrono::steady_clock::now();
  const bool total_only = plan.output == Output::kTotal;
  queue_.add_buffers(budget_, plan.output, plan.batch_entries,
                     total_only ? 1 : 2 * pool_.size() + 1);
  std::uint64_t total = 0;
  if (plan.left->data->rows > 0) {
    std::deque<Walker> walkers;
    for (unsigned worker = 0; worker < pool_.size(); ++worker)
      walkers.emplace_back(plan, budget_, pool_, queue_);

    // Stretches short enough that no worker is left with a long one at the end.
    const std::uint64_t points = plan.left->points;
    const std::uint64_t stretch = std::clamp<std::uint64_t>(points / (64 * pool_.size()), 64, 8192);
    pool_.parallel_for((points + stretch - 1) / stretch, [&](std::size_t item, unsigned worker) {
      Walker& walker = walkers[worker];
      walker.walk(static_cast<std::uint32_t>(item * stretch),
                  static_cast<std::uint32_t>(std::min(points, (item + 1) * stretch)));
      candidates_ += std::exchange(walker.candidates, 0);
      rechecked_ += std::exchange(walker.rechecked, 0);
    });
    if (plan.output == Output::kCountPerRow)
      for (std::uint64_t position = points; position < plan.left->data->rows; ++position)
        walkers[0].add_lone_point(static_cast<std::uint32_t>(position));

    double waited_ms = 0;
    for (Walker& walker : walkers) {
      walker.flush();
      total += walker.pairs;
      waited_ms += walker.waited_ms;
    }
    const std::lock_guard lock(stats_mutex_);
    stats_.join_ms = milliseconds_since(begin);
    stats_.busy_ms = stats_.join_ms - waited_ms / pool_.size();
  }
  if (total_only) {
    BatchBuffer* const buffer = queue_.take_empty();
    buffer->pair_count = total;
    queue_.put_full(buffer);
  }
}

ResultBatch RangeJoin::view(const BatchBuffer& buffer) const {
  ResultBatch batch{};
  batch.row_count = buffer.row_count;
  batch.pair_count = buffer.pair_count;
  batch.rows = buffer.rows.data();
  batch.offsets = buffer.offsets.data();
  batch.neighbors = buffer.neighbors.data();
  batch.distances = buffer.distances.data();
  batch.counts = buffer.counts.data();
  batch.left_ids = left_.ids.data();
  batch.right_ids = request_.self_join ? left_.ids.data() : right_.ids.data();
  batch.mirrored = mirrored_;
  return batch;
}

Status RangeJoin::next_batch(ResultBatch* batch) {
  if (current_ != nullptr) queue_.put_empty(std::exchange(current_, nullptr));
  for (;;) {
    bool finished = false;
    current_ = queue_.take_full(&finished);
    if (current_ != nullptr) {
      *batch = view(*current_);
      const std::lock_guard lock(stats_mutex_);
      ++stats_.batches;
      stats_.pairs += batch->pair_count;
      return {};
    }
    if (finished) return error_ ? status_of(error_) : Status{StatusCode::kEnd};
    if (request_.interrupt != nullptr && *request_.interrupt != 0)
      return {StatusCode::kInterrupted};
  }
}

void RangeJoin::stats(JoinStats* stats) const {
  const std::lock_guard lock(stats_mutex_);
  *stats = stats_;
  stats->candidates = candidates_;
  stats->rechecked = rechecked_;
  stats->memory_peak = budget_.peak();
}

}  // namespace gpujoin::cpu
