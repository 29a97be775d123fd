#include "engine/joins/chosen_rows.h"

#include <algorithm>
#include <cstring>

namespace gpujoin {

ChosenRows::ChosenRows(MemoryBudget& budget, const Dataset& data, const std::uint32_t* rows,
                       std::uint64_t count, std::uint64_t memory, const RowFile* scratch)
    : count_(count) {
  const Dataset plain = bare_rows(data);
  if (data.file == nullptr) {
    rows_ = copy_rows(budget, plain, rows, count, [] {});
    return;
  }
  data_ = &data;
  scratch_ = scratch;
  chosen_ = Buffer<std::uint64_t>(budget, (data.rows + 63) / 64);
  std::fill(chosen_.begin(), chosen_.end(), 0);
  for (std::uint64_t i = 0; i < count; ++i)
    chosen_[rows[i] / 64] |= std::uint64_t{1} << rows[i] % 64;
  const std::uint64_t chunk_rows = rows_of_chunk(data, 0);
  chunk_ = make_room_for_rows(budget, plain, chunk_rows);
  in_file_ = count > chunk_rows && count > memory / row_bytes(plain);
  rows_ = make_room_for_rows(budget, plain, in_file_ ? chunk_rows : count);
}

bool ChosenRows::step() {
  if (data_ == nullptr || next_chunk_ == chunk_count(*data_)) return false;
  load_chunk(bare_rows(*data_), next_chunk_, chunk_);
  const std::uint64_t first = next_chunk_ << data_->chunk_bits;
  const std::uint64_t end = first + rows_of_chunk(*data_, next_chunk_);
  for (std::uint64_t row = first; row < end; ++row)
    if (is_chosen(row)) take(row, row - first);
  if (++next_chunk_ < chunk_count(*data_)) return true;
  chunk_ = {};
  chosen_ = {};
  if (!in_file_) return false;
  flush();
  rows_ = {};
  return false;
}

void ChosenRows::take(std::uint64_t row, std::uint64_t position) {
  const std::uint64_t bytes = point_bytes(rows_.view);
  rows_.ids[taken_] = static_cast<std::int64_t>(row);
  std::memcpy(rows_.coordinates.data() + taken_ * bytes,
              chunk_.coordinates.data() + position * bytes, bytes);
  if (++taken_ == rows_.view.rows && in_file_) flush();
}

void ChosenRows::flush() {
  if (taken_ == 0) return;
  places_.push_back(write_rows(*scratch_, rows_, 0, taken_));
  taken_ = 0;
}

Dataset ChosenRows::view() const {
  if (!in_file_) return rows_.view;
  Dataset view = bare_rows(*data_);
  view.rows = count_;
  view.file = scratch_;
  view.places = places_.data();
  view.by_position = false;
  view.key = {};
  return view;
}

}  // namespace gpujoin
