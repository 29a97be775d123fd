// One worker's way to the result: the batch that it is filling, and what it has done since its last
// report. Walkers decide what goes into a batch.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "cpu/batch_queue.h"

namespace gpujoin::cpu {

/// What all workers of a join did so far.
struct WalkTally {
  std::atomic<std::uint64_t> candidates{0};
  std::atomic<std::uint64_t> rechecked{0};
  std::atomic<std::uint64_t> busy_ns{
      0};  ///< summed over workers; waiting for the caller is left out
};

class BatchWriter {
 public:
  BatchWriter(BatchQueue& queue, WalkTally& tally, std::uint64_t batch_entries)
      : queue_(queue), tally_(tally), batch_entries_(batch_entries) {}

  /// Starts the clock of a piece of work.
  void begin() { working_since_ = std::chrono::steady_clock::now(); }
  /// Ends the piece of work: adds it to the tally, and gives a caller who waits what there is.
  void end();
  /// A batch with room for `entries` more, at most batch_entries. Waits for an empty buffer where
  /// there is none at hand; throws Stopped.
  BatchBuffer& make_room(std::uint64_t entries);
  /// Makes a row, or more of the last one, of `found` neighbours that were written behind the
  /// entries of `batch`, which make_room() returned. They stand for `pairs_of_row` pairs.
  void add_row(BatchBuffer& batch, std::uint32_t position, std::uint64_t found,
               std::uint64_t pairs_of_row);
  /// Appends a row of counts.
  void add_count(std::uint32_t position, std::uint64_t count);
  /// Hands the batch over, as full as it is.
  void flush();

  std::uint64_t pairs = 0;                      ///< found by this worker
  std::uint64_t candidates = 0, rechecked = 0;  ///< since the last report

 private:
  void report();

  BatchQueue& queue_;
  WalkTally& tally_;
  std::uint64_t batch_entries_;
  BatchBuffer* batch_ = nullptr;
  std::chrono::steady_clock::time_point working_since_ = std::chrono::steady_clock::now();
};

}  // namespace gpujoin::cpu
