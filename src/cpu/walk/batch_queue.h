// Where workers put finished parts of the result and the caller takes them. Bounded: workers wait
// when the caller is slow, so memory stays flat whatever the size of the result.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "engine/request/buffer.h"
#include "engine/request/request.h"

namespace gpujoin::cpu {

/// Compressed rows as in ResultBatch, with room for a fixed number of entries.
struct BatchBuffer {
  static constexpr std::uint64_t kBytesPerEntry = 24;  // with all arrays that pairs may need

  std::uint64_t row_count = 0;
  std::uint64_t entry_count = 0;
  std::uint64_t pair_count = 0;
  bool transposed = false;          // as in ResultBatch
  Buffer<std::uint32_t> rows;       // [entries]
  Buffer<std::uint64_t> offsets;    // [entries + 1]
  Buffer<std::uint32_t> neighbors;  // [entries + kCollectPadding]
  Buffer<double> distances;         // likewise; empty when not wanted
  Buffer<std::uint64_t> counts;     // [entries] when counts are wanted, else empty
  Buffer<FoldWord> sums;            // [entries][row_words()] when sums are wanted, else empty

  BatchBuffer() = default;
  BatchBuffer(MemoryBudget& budget, const JoinRequest& request, std::uint64_t entries);
  void clear();
};

class BatchQueue {
 public:
  void add_buffers(MemoryBudget& budget, const JoinRequest& request, std::uint64_t entries,
                   unsigned count);

  /// Waits for an empty buffer. Throws Stopped once stop() was called.
  BatchBuffer* take_empty();
  void put_full(BatchBuffer* buffer);
  /// No more full buffers will come.
  void finish();
  /// Makes every worker leave that waits for an empty buffer, now or later.
  void stop();
  /// Whether the caller waits for a buffer, so that a half-full one is welcome.
  bool caller_waits();

  void put_empty(BatchBuffer* buffer);
  /// The next full buffer; or null when the last one was taken, which sets *finished, or when none
  /// came within a few milliseconds.
  BatchBuffer* take_full(bool* finished);

 private:
  std::mutex mutex_;
  std::condition_variable empty_came_;
  std::condition_variable full_came_;
  std::deque<BatchBuffer> buffers_;  // stable addresses
  // With room for all buffers from the start: passing one on never allocates.
  std::vector<BatchBuffer*> empty_;
  std::vector<BatchBuffer*> full_;  // in the order of their coming
  bool caller_waits_ = false;
  bool finished_ = false;
  bool stopped_ = false;
};

}  // namespace gpujoin::cpu
