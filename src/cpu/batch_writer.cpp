#include "cpu/batch_writer.h"

#include <utility>

namespace gpujoin::cpu {

void BatchWriter::end() {
  report();
  if (batch_ != nullptr && queue_.caller_waits()) flush();
}

BatchBuffer& BatchWriter::make_room(std::uint64_t entries) {
  if (batch_ != nullptr && batch_->entry_count + entries > batch_entries_) flush();
  if (batch_ == nullptr) {
    report();
    batch_ = queue_.take_empty();
    begin();
  }
  return *batch_;
}

void BatchWriter::add_row(BatchBuffer& batch, std::uint32_t position, std::uint64_t found,
                          std::uint64_t pairs_of_row) {
  const bool continued = batch.row_count > 0 && batch.rows[batch.row_count - 1] == position;
  if (!continued) batch.rows[batch.row_count++] = position;
  batch.entry_count += found;
  batch.offsets[batch.row_count] = batch.entry_count;
  batch.pair_count += pairs_of_row;
  pairs += pairs_of_row;
}

void BatchWriter::add_count(std::uint32_t position, std::uint64_t count) {
  BatchBuffer& batch = make_room(1);
  batch.rows[batch.row_count] = position;
  batch.counts[batch.row_count++] = count;
  batch.entry_count = batch.row_count;
  batch.pair_count += count;
  pairs += count;
}

void BatchWriter::flush() {
  if (batch_ == nullptr || batch_->entry_count == 0) return;
  queue_.put_full(batch_);
  batch_ = nullptr;
}

void BatchWriter::report() {
  const auto now = std::chrono::steady_clock::now();
  tally_.busy_ns += std::chrono::nanoseconds(now - working_since_).count();
  tally_.candidates += std::exchange(candidates, 0);
  tally_.rechecked += std::exchange(rechecked, 0);
  working_since_ = now;
}

}  // namespace gpujoin::cpu
