#include "cpu/walk/batch_writer.h"

#include <algorithm>

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

void BatchWriter::add_number(std::uint32_t position, std::uint64_t number) {
  BatchBuffer& batch = make_room(1);
  batch.rows[batch.row_count] = position;
  batch.counts[batch.row_count++] = number;
  batch.entry_count = batch.row_count;
}

void BatchWriter::add_count(std::uint32_t position, std::uint64_t count) {
  add_number(position, count);
  batch_->pair_count += count;
}

void BatchWriter::add_sums(std::uint32_t position, std::uint64_t count, const FoldWord* words,
                           std::uint32_t width) {
  BatchBuffer& batch = make_room(1);
  std::copy_n(words, width, batch.sums.data() + batch.row_count * width);
  add_count(position, count);
}

void BatchWriter::flush() {
  if (batch_ == nullptr || batch_->entry_count == 0) return;
  queue_.put_full(batch_);
  batch_ = nullptr;
}

}  // namespace gpujoin::cpu
