// What the walks of a join share, whatever their index and their sinks: workers, memory, the queue
// of batches, and the account of work done.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>

#include "cpu/walk/batch_queue.h"
#include "engine/request/memory_budget.h"
#include "engine/worker_pool.h"

namespace gpujoin::cpu {

/// What all workers of a join did so far.
struct WalkTally {
  std::atomic<std::uint64_t> candidates{0};
  std::atomic<std::uint64_t> rechecked{0};
  std::atomic<std::uint64_t> busy_ns{
      0};  ///< summed over workers; waiting for the caller is left out
};

struct WalkTools {
  MemoryBudget& budget;
  WorkerPool& pool;
  BatchQueue& queue;
  WalkTally& tally;

  /// How many items a worker walks at a time: few enough that all workers end at about the same
  /// time.
  std::uint64_t stretch_of(std::uint64_t items) const {
    return std::clamp<std::uint64_t>(items / (64 * pool.size()), 64, 8192);
  }
};

/// One worker's account of its work since its last report.
class WalkProgress {
 public:
  explicit WalkProgress(WalkTally& tally) : tally_(tally) {}

  /// Starts the clock of a piece of work.
  void begin() { working_since_ = std::chrono::steady_clock::now(); }
  /// Adds the work to the tally.
  void report() {
    const auto now = std::chrono::steady_clock::now();
    tally_.busy_ns += std::chrono::nanoseconds(now - working_since_).count();
    tally_.candidates += std::exchange(candidates, 0);
    tally_.rechecked += std::exchange(rechecked, 0);
    working_since_ = now;
  }

  std::uint64_t candidates = 0, rechecked = 0;

 private:
  WalkTally& tally_;
  std::chrono::steady_clock::time_point working_since_ = std::chrono::steady_clock::now();
};

}  // namespace gpujoin::cpu
