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

/// How far a join's walks are, from any thread: work that is planned, and how much of it is done.
class WorkAccount {
 public:
  /// So many walks follow, each about as much work as the first of them. It counts until the next
  /// call.
  void expect_walks(unsigned walks) { expected_ = walks; }
  /// About so much work follows the walks that begin from now on.
  void expect_later(std::uint64_t work) { later_ = work; }
  /// A walk begins that is so much work.
  void begin_walk(std::uint64_t work) {
    planned_ = done_ + work * std::max(1u, expected_) + later_;
    if (expected_ > 0) --expected_;
  }
  void add(std::uint64_t work) { done_ += work; }

  std::uint64_t done() const { return std::min<std::uint64_t>(done_, planned_); }
  std::uint64_t planned() const { return planned_; }  ///< 0: no walk has begun

 private:
  std::atomic<std::uint64_t> planned_{0}, done_{0};
  unsigned expected_ = 0;    ///< walks, the one that begins included
  std::uint64_t later_ = 0;  ///< work after them
};

/// What all workers of a join did so far.
struct WalkTally {
  WorkAccount work;
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
  /// Starts a task that was planned as so much work.
  void begin_task(std::uint64_t planned) { open_ = planned; }
  /// What is left of the plan is done.
  void end_task() { tally_.work.add(std::exchange(open_, 0)); }
  /// Adds the work to the tally: no more than was planned.
  void report() {
    const auto now = std::chrono::steady_clock::now();
    tally_.busy_ns += std::chrono::nanoseconds(now - working_since_).count();
    tally_.candidates += std::exchange(candidates, 0);
    tally_.rechecked += std::exchange(rechecked, 0);
    const std::uint64_t done = std::min(std::exchange(work, 0), open_);
    open_ -= done;
    tally_.work.add(done);
    working_since_ = now;
  }

  std::uint64_t candidates = 0, rechecked = 0;
  std::uint64_t work = 0;  ///< in the unit of the task's plan

 private:
  WalkTally& tally_;
  std::uint64_t open_ = 0;  ///< of the task's plan
  std::chrono::steady_clock::time_point working_since_ = std::chrono::steady_clock::now();
};

/// Runs walk(walker, task) for so many tasks on all workers, each with a walker of its own.
/// plan(task) is what a task is expected to cost.
template <class Walkers, class Plan, class Walk>
void walk_tasks(const WalkTools& tools, Walkers& walkers, std::uint64_t tasks, const Plan& plan,
                const Walk& walk) {
  std::uint64_t work = 0;
  for (std::uint64_t task = 0; task < tasks; ++task) work += plan(task);
  tools.tally.work.begin_walk(work);
  tools.pool.parallel_for(tasks, [&](std::size_t task, unsigned worker) {
    WalkProgress& progress = walkers[worker].progress();
    progress.begin_task(plan(task));
    walk(walkers[worker], task);
    progress.end_task();
  });
}

}  // namespace gpujoin::cpu
