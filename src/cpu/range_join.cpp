#include "cpu/range_join.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <new>
#include <utility>

#include "core/threshold.h"
#include "engine/reference_points.h"
#include "engine/stopwatch.h"

namespace gpujoin::cpu {
namespace {

constexpr std::uint64_t kDefaultBatchEntries = 1 << 16;
constexpr std::uint64_t kMaxBatchEntries = 1 << 20;

/// Entries of a batch: as asked for, but all buffers together in a small part of the memory limit.
std::uint64_t batch_entries(const JoinRequest& request, unsigned buffers) {
  std::uint64_t entries =
      request.knobs.batch_pairs > 0 ? request.knobs.batch_pairs : kDefaultBatchEntries;
  entries = std::min(entries, kMaxBatchEntries);
  if (request.memory_limit == 0) return entries;
  const std::uint64_t affordable = request.memory_limit / 8 / buffers / BatchBuffer::kBytesPerEntry;
  return std::max<std::uint64_t>(1, std::min(entries, affordable));
}

/// Threads that the work is worth: below some hundred microseconds each, starting them costs more.
unsigned useful_threads(const JoinRequest& request) {
  constexpr double kCoordinatesPerThread = 1e6;
  const double left = static_cast<double>(request.left.rows);
  const double right =
      static_cast<double>(request.self_join ? request.left.rows : request.right.rows);
  const double most = 1 + left * right * request.left.dims / kCoordinatesPerThread;
  return most < request.threads ? static_cast<unsigned>(most) : request.threads;
}

unsigned buffer_count(unsigned workers) { return 2 * workers + 1; }

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
    : request_(request), budget_(request.memory_limit), pool_(useful_threads(request)) {
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
  const Stopwatch watch;
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
  plan.batch_entries = batch_entries(request_, buffer_count(pool_.size()));
  left_.data = &request_.left;
  right_.data = &request_.right;
  if (left.rows == 0) return plan;

  plan.threshold = make_threshold(request_.metric, request_.eps);
  plan.screen = make_screen_bounds(request_.metric, plan.threshold.raw, left.dims);
  plan.strategy = choose_strategy(request_);
  plan.kernel = choose_scan_kernel(request_.metric, left.scalar, left.dims, plan.strategy.screened);
  mirrored_ = plan.mirrored();
  const ReferencePoints references = place_reference_points(request_, plan.strategy);
  plan.reach = references.count == 0
                   ? plan.threshold.reach
                   : reference_reach(request_.eps, left.dims, references.frame, false);
  IndexColumns left_columns = make_index_columns(pool_, budget_, left, references);
  IndexColumns right_columns;
  if (right != nullptr) right_columns = make_index_columns(pool_, budget_, *right, references);
  layout = make_layout(pool_, plan.strategy, plan.reach, left_columns,
                       right != nullptr ? &right_columns : nullptr);
  left_ = build_index(pool_, budget_, layout, std::move(left_columns));
  if (right != nullptr) right_ = build_index(pool_, budget_, layout, std::move(right_columns));

  const std::lock_guard lock(stats_mutex_);
  stats_.strategy = plan.strategy;
  stats_.index_ms = watch.milliseconds();
  return plan;
}

/// Walks the left index on all workers and puts the result into the queue.
void RangeJoin::join(const JoinPlan& plan) {
  const bool total_only = plan.output == Output::kTotal;
  queue_.add_buffers(budget_, plan.output, plan.batch_entries,
                     total_only ? 1 : buffer_count(pool_.size()));
  std::uint64_t total = 0;
  if (plan.left->data->rows > 0) {
    std::deque<Walker> walkers;
    for (unsigned worker = 0; worker < pool_.size(); ++worker)
      walkers.emplace_back(plan, budget_, pool_, queue_, tally_);

    // Stretches short enough that no worker is left with a long one at the end.
    const std::uint64_t points = plan.left->points;
    const std::uint64_t stretch = std::clamp<std::uint64_t>(points / (64 * pool_.size()), 64, 8192);
    pool_.parallel_for((points + stretch - 1) / stretch, [&](std::size_t item, unsigned worker) {
      walkers[worker].walk(static_cast<std::uint32_t>(item * stretch),
                           static_cast<std::uint32_t>(std::min(points, (item + 1) * stretch)));
    });
    if (plan.output == Output::kCountPerRow)
      for (std::uint64_t position = points; position < plan.left->data->rows; ++position)
        walkers[0].add_lone_point(static_cast<std::uint32_t>(position));

    for (Walker& walker : walkers) {
      walker.flush();
      total += walker.pairs;
    }
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
  stats->candidates = tally_.candidates;
  stats->rechecked = tally_.rechecked;
  stats->join_ms = static_cast<double>(tally_.busy_ns) / 1e6 / pool_.size();
  stats->memory_peak = budget_.peak();
}

}  // namespace gpujoin::cpu
