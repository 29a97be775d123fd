#include "cpu/walk/batch_writer.h"

namespace gpujoin::cpu {

BatchBuffer& BatchWriter::make_room(std::uint64_t entries) {
  if (batch_ != nullptr && batch_->entry_count + entries > batch_entries_) flush();
  if (batch_ == nullptr) {
    progress_.report();
    batch_ = queue_.take_empty();
    progress_.begin();
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
}

void BatchWriter::add_count(std::uint32_t position, std::uint64_t count) {
  BatchBuffer& batch = make_room(1);
  batch.rows[batch.row_count] = position;
  batch.counts[batch.row_count++] = count;
  batch.entry_count = batch.row_count;
  batch.pair_count += count;
}

void BatchWriter::flush() {
  if (batch_ == nullptr || batch_->entry_count == 0) return;
  queue_.put_full(batch_);
  batch_ = nullptr;
}

}  // namespace gpujoin::cpu
