#include "cpu/threaded_join.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "cpu/scan/scan.h"

namespace gpujoin::cpu {
namespace {

constexpr std::uint64_t kDefaultBatchEntries = 1 << 16;
constexpr std::uint64_t kMaxBatchEntries = 1 << 20;

unsigned buffer_count(unsigned workers) { return 2 * workers + 1; }

/// Entries of a batch: as asked for, but all buffers together in a small part of the memory limit.
std::uint64_t entries_of_batches(const JoinRequest& request, unsigned buffers) {
  std::uint64_t entries =
      request.knobs.batch_pairs > 0 ? request.knobs.batch_pairs : kDefaultBatchEntries;
  entries = std::min(entries, kMaxBatchEntries);
  if (request.output() == Output::kNearest)
    entries = std::min(entries, request.left().rows * request.neighbors());
  // A row's neighbours come together.
  const std::uint64_t fewest = std::min(request.neighbors(), request.right().rows);
  const std::uint64_t words = request.output() == Output::kSums ? row_words(*request.sums()) : 0;
  const std::uint64_t bytes = BatchBuffer::kBytesPerEntry + words * sizeof(FoldWord);
  if (request.resources.memory_limit > 0)
    entries = std::min(entries, request.resources.memory_limit / 8 / buffers / bytes);
  return std::max({std::uint64_t{1}, entries, fewest});
}

/// Threads that the work is worth: a thread with less than some hundred microseconds of it costs
/// more to start.
unsigned useful_threads(const JoinRequest& request) {
  constexpr double kCoordinatesPerThread = 4e6;
  const double left = static_cast<double>(request.left().rows);
  const double right = static_cast<double>(request.right().rows);
  const double most = 1 + left * right * request.left().dims / kCoordinatesPerThread;
  return most < request.resources.threads ? static_cast<unsigned>(most) : request.resources.threads;
}

}  // namespace

ThreadedJoin::ThreadedJoin(const JoinRequest& request)
    : ThreadedJoin(request, std::make_shared<MemoryBudget>(request.resources.memory_limit)) {}

ThreadedJoin::ThreadedJoin(const JoinRequest& request, std::shared_ptr<MemoryBudget> budget)
    : request_(request),
      shared_budget_(std::move(budget)),
      budget_(*shared_budget_),
      pool_(useful_threads(request)),
      batch_entries_(entries_of_batches(request, buffer_count(pool_.size()))) {
  stats_.left_rows = request.left().rows;
  stats_.right_rows = request.right().rows;
  stats_.threads = pool_.size();
  std::snprintf(stats_.instruction_set, sizeof stats_.instruction_set, "%s", instruction_set());
}

void ThreadedJoin::start() {
  driver_ = start_thread([this] { run_at_once(); });
}

void ThreadedJoin::run_at_once() {
  try {
    run();
  } catch (...) {
    error_ = std::current_exception();
  }
  queue_.finish();
}

void ThreadedJoin::stop() {
  pool_.stop();
  queue_.stop();
  if (driver_.joinable()) driver_.join();
}

void ThreadedJoin::add_buffers() {
  const bool total_only = request_.output() == Output::kTotal;
  queue_.add_buffers(budget_, request_, batch_entries_,
                     total_only ? 1 : buffer_count(pool_.size()));
}

void ThreadedJoin::put_total(std::uint64_t total) {
  BatchBuffer* const buffer = queue_.take_empty();
  buffer->pair_count = total;
  queue_.put_full(buffer);
}

Status ThreadedJoin::next_batch(ResultBatch* batch) {
  if (current_ != nullptr) queue_.put_empty(std::exchange(current_, nullptr));
  const std::chrono::milliseconds patience(request_.resources.patience_ms);
  const auto begun = std::chrono::steady_clock::now();
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
    if (finished && error_) std::rethrow_exception(error_);
    if (finished) return {StatusCode::kEnd};
    if (is_raised(request_.resources.interrupt) ||
        (patience.count() > 0 && std::chrono::steady_clock::now() - begun >= patience))
      return {StatusCode::kInterrupted};
  }
}

void ThreadedJoin::stats(JoinStats* stats) const {
  const std::lock_guard lock(stats_mutex_);
  *stats = stats_;
  stats->candidates = tally_.candidates;
  stats->rechecked = tally_.rechecked;
  stats->join_ms = static_cast<double>(tally_.busy_ns) / 1e6 / pool_.size();
  stats->memory_peak = budget_.peak();
  stats->work_done = tally_.work.done();
  stats->work = tally_.work.planned();
}

}  // namespace gpujoin::cpu
