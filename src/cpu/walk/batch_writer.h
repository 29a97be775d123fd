// One worker's way to the result: the batch that it is filling. Sinks decide what goes into it.
#pragma once

#include <cstdint>

#include "cpu/walk/walk_tools.h"

namespace gpujoin::cpu {

class BatchWriter {
 public:
  /// The time that it waits for an empty buffer is not in `progress`.
  BatchWriter(BatchQueue& queue, WalkProgress& progress, std::uint64_t batch_entries)
      : queue_(queue), progress_(progress), batch_entries_(batch_entries) {}

  /// A batch with room for `entries` more, at most batch_entries. Waits for an empty buffer where
  /// there is none at hand; throws Stopped.
  BatchBuffer& make_room(std::uint64_t entries);
  /// Makes a row, or more of the last one, of `found` neighbours that were written behind the
  /// entries of `batch`, which make_room() returned. They stand for `pairs_of_row` pairs.
  void add_row(BatchBuffer& batch, std::uint32_t position, std::uint64_t found,
               std::uint64_t pairs_of_row);
  /// Appends a row of counts.
  void add_count(std::uint32_t position, std::uint64_t count);
  /// Appends a row with a number that is none of pairs.
  void add_number(std::uint32_t position, std::uint64_t number);
  /// Appends a row of counts and so many words.
  void add_sums(std::uint32_t position, std::uint64_t count, const FoldWord* words,
                std::uint32_t width);
  /// Hands the batch over, as full as it is.
  void flush();
  /// Hands the batch over to a caller who waits.
  void serve_caller() {
    if (batch_ != nullptr && queue_.caller_waits()) flush();
  }

 private:
  BatchQueue& queue_;
  WalkProgress& progress_;
  std::uint64_t batch_entries_;
  BatchBuffer* batch_ = nullptr;
};

}  // namespace gpujoin::cpu
