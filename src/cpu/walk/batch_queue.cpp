#include "cpu/walk/batch_queue.h"

#include <chrono>

#include "cpu/scan/scan.h"
#include "engine/worker_pool.h"

namespace gpujoin::cpu {

BatchBuffer::BatchBuffer(MemoryBudget& budget, const JoinRequest& request, std::uint64_t entries) {
  const Output::Kind output = request.output();
  if (output == Output::kTotal) return;
  rows = Buffer<std::uint32_t>(budget, entries);
  if (wants_counts(output)) {
    counts = Buffer<std::uint64_t>(budget, entries);
    if (output == Output::kSums)
      sums = Buffer<FoldWord>(budget, entries * row_words(*request.sums()));
    return;
  }
  offsets = Buffer<std::uint64_t>(budget, entries + 1);
  offsets[0] = 0;
  neighbors = Buffer<std::uint32_t>(budget, entries + kCollectPadding);
  if (wants_distances(output)) distances = Buffer<double>(budget, entries + kCollectPadding);
}

void BatchBuffer::clear() { row_count = entry_count = pair_count = 0; }

void BatchQueue::add_buffers(MemoryBudget& budget, const JoinRequest& request,
                             std::uint64_t entries, unsigned count) {
  const std::lock_guard lock(mutex_);
  empty_.reserve(count);
  full_.reserve(count);
  for (unsigned i = 0; i < count; ++i)
    empty_.push_back(&buffers_.emplace_back(budget, request, entries));
}

BatchBuffer* BatchQueue::take_empty() {
  std::unique_lock lock(mutex_);
  empty_came_.wait(lock, [this] { return stopped_ || !empty_.empty(); });
  if (stopped_) throw Stopped{};
  BatchBuffer* const buffer = empty_.back();
  empty_.pop_back();
  return buffer;
}

void BatchQueue::put_full(BatchBuffer* buffer) {
  const std::lock_guard lock(mutex_);
  full_.push_back(buffer);
  full_came_.notify_one();
}

void BatchQueue::finish() {
  const std::lock_guard lock(mutex_);
  finished_ = true;
  full_came_.notify_one();
}

void BatchQueue::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  empty_came_.notify_all();
}

bool BatchQueue::caller_waits() {
  const std::lock_guard lock(mutex_);
  return caller_waits_;
}

void BatchQueue::put_empty(BatchBuffer* buffer) {
  const std::lock_guard lock(mutex_);
  buffer->clear();
  empty_.push_back(buffer);
  empty_came_.notify_one();
}

BatchBuffer* BatchQueue::take_full(bool* finished) {
  constexpr std::chrono::milliseconds kPatience(5);
  std::unique_lock lock(mutex_);
  caller_waits_ = true;
  full_came_.wait_for(lock, kPatience, [this] { return finished_ || !full_.empty(); });
  caller_waits_ = false;
  *finished = finished_ && full_.empty();
  if (full_.empty()) return nullptr;
  BatchBuffer* const buffer = full_.front();
  full_.erase(full_.begin());
  return buffer;
}

}  // namespace gpujoin::cpu
