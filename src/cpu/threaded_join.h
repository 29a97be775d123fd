// What all joins of the CPU engine have in common: a thread that runs the join on a pool of
// workers, the queue through which batches reach the caller, memory, statistics and errors.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "cpu/walk/batch_queue.h"
#include "cpu/walk/walk_tools.h"
#include "engine/joins/join.h"
#include "engine/request/buffer.h"
#include "engine/request/result.h"
#include "engine/request/status.h"
#include "engine/worker_pool.h"

namespace gpujoin::cpu {

/// A join that runs in threads of its own from construction to destruction. The datasets of the
/// request must outlive it. Methods are for one thread; next_batch() throws what its threads threw.
///
/// The constructor of a derived class calls start() last, and its destructor stop() first: what
/// runs in between uses its members.
class ThreadedJoin : public Join {
 public:
  Status next_batch(ResultBatch* batch) override;
  void stats(JoinStats* stats) const override;

 protected:
  /// The request is a valid one. Throws std::system_error or std::bad_alloc.
  explicit ThreadedJoin(const JoinRequest& request);
  /// The same with memory that other joins share.
  ThreadedJoin(const JoinRequest& request, std::shared_ptr<MemoryBudget> budget);

  /// Starts the thread that calls run(). Throws std::system_error or std::bad_alloc.
  void start();
  /// Runs the join in the calling thread. Its result must fit into the buffers.
  void run_at_once();
  /// Stops the threads wherever they are and waits for them.
  void stop();

  /// The whole join, in a thread of its own: puts the result into queue_. What it throws is thrown
  /// by next_batch() at the end.
  virtual void run() = 0;
  /// A full buffer as the caller sees it.
  virtual ResultBatch view(const BatchBuffer& buffer) const = 0;

  /// Adds the buffers that the output needs to the queue.
  void add_buffers();
  /// Hands over the result of Output::kTotal.
  void put_total(std::uint64_t total);
  std::uint64_t batch_entries() const { return batch_entries_; }
  WalkTools tools() { return {budget_, pool_, queue_, tally_}; }

  /// Changes the statistics, which the caller may be reading: change(stats).
  template <class Change>
  void note(const Change& change) {
    const std::lock_guard lock(stats_mutex_);
    change(stats_);
  }

  const JoinRequest request_;
  const std::shared_ptr<MemoryBudget> shared_budget_;
  MemoryBudget& budget_;
  WorkerPool pool_;
  BatchQueue queue_;
  WalkTally tally_;

 private:
  std::uint64_t batch_entries_;
  BatchBuffer* current_ = nullptr;  // the one the caller reads
  std::exception_ptr error_;        // set before the queue is finished
  mutable std::mutex stats_mutex_;  // guards stats_; the tally goes into it when it is read
  JoinStats stats_{};
  std::thread driver_;
};

/// The buffer's arrays; ids and ResultBatch::mirrored are the join's.
inline ResultBatch batch_of(const BatchBuffer& buffer) {
  ResultBatch batch{};
  batch.row_count = buffer.row_count;
  batch.pair_count = buffer.pair_count;
  batch.rows = buffer.rows.data();
  batch.offsets = buffer.offsets.data();
  batch.neighbors = buffer.neighbors.data();
  batch.distances = buffer.distances.data();
  batch.counts = buffer.counts.data();
  batch.sums = buffer.sums.data();
  batch.transposed = buffer.transposed;
  return batch;
}

}  // namespace gpujoin::cpu
