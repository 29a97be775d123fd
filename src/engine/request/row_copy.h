// Some rows of a dataset as a dataset of their own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "engine/request/buffer.h"
#include "engine/request/dataset.h"

namespace gpujoin {

struct RowCopy {
  Buffer<unsigned char> coordinates;
  Buffer<std::int64_t> ids;
  Buffer<double> scores;
  Buffer<double> keys;
  std::uint32_t column_count = 0;
  Buffer<std::uint64_t> columns;  ///< [column_count][rows] numbers of any kind, of Output::kSums
  Dataset view{};

  const void* column(std::uint32_t number) const { return columns.data() + number * view.rows; }
};

/// Some rows of a copy's view, as a view.
inline Dataset piece_of(const Dataset& part, std::uint64_t first, std::uint64_t rows) {
  Dataset piece = part;
  piece.rows = rows;
  if (rows == 0) return piece;
  piece.first_chunk = point(part, first);
  if (piece.ids != nullptr) piece.ids += first;
  if (piece.scores != nullptr) piece.scores += first;
  if (piece.keys != nullptr) piece.keys += first * piece.key_columns;
  return piece;
}

/// Room for so many rows like those of the dataset, for columns of theirs and, if `named`, for
/// their ids; `view` is of the rows. Throws what Buffer throws.
inline RowCopy make_room_for_rows(MemoryBudget& budget, const Dataset& like, std::uint64_t rows,
                                  std::uint32_t columns = 0, bool named = true) {
  RowCopy room;
  room.coordinates = Buffer<unsigned char>(budget, rows * point_bytes(like));
  if (named) room.ids = Buffer<std::int64_t>(budget, rows);
  if (has_scores(like)) room.scores = Buffer<double>(budget, rows);
  room.view = {room.coordinates.data(), room.ids.data(), rows, like.dims, like.scalar,
               room.scores.data()};
  if (like.key_columns > 0) {
    room.keys = Buffer<double>(budget, rows * like.key_columns);
    room.view.keys = room.keys.data();
    room.view.key_columns = like.key_columns;
  }
  room.column_count = columns;
  room.columns = Buffer<std::uint64_t>(budget, rows * columns);
  return room;
}

/// Copies rows number first .. end - 1 of a list to the same places of `copy`, which has room for
/// all of them. They keep their ids, if it has room for these; where the dataset has none, their
/// positions in it become their ids. `columns` are further ones of the dataset's rows, of 8 bytes a
/// row.
inline void copy_listed_rows(const Dataset& data, const std::uint32_t* rows, std::uint64_t first,
                             std::uint64_t end, const void* const* columns, RowCopy* copy) {
  constexpr std::uint64_t kRowsAhead = 16;  // asked of memory before they are wanted
  const std::uint64_t bytes = point_bytes(data);
  const bool named = copy->ids.size() > 0;
  for (std::uint64_t i = first; i < end; ++i) {
    if (i + kRowsAhead < end) {
      __builtin_prefetch(point(data, rows[i + kRowsAhead]));
      if (named && data.ids != nullptr) __builtin_prefetch(data.ids + rows[i + kRowsAhead]);
    }
    const std::uint64_t row = rows[i];
    std::memcpy(copy->coordinates.data() + i * bytes, point(data, row), bytes);
    if (named) copy->ids[i] = id_of(data, row);
    if (data.scores != nullptr) copy->scores[i] = data.scores[row];
    for (std::uint32_t k = 0; k < data.key_columns; ++k)
      copy->keys[i * data.key_columns + k] = key_of(data, row, k);
  }
  for (std::uint32_t c = 0; c < copy->column_count; ++c) {
    std::uint64_t* const to = copy->columns.data() + c * copy->view.rows;
    const auto* const from = static_cast<const std::uint64_t*>(columns[c]);
    for (std::uint64_t i = first; i < end; ++i) to[i] = from[rows[i]];
  }
}

/// The rows listed. Calls poll() now and then. Throws what Buffer and poll() throw.
template <class Poll>
RowCopy copy_rows(MemoryBudget& budget, const Dataset& data, const std::uint32_t* rows,
                  std::uint64_t count, const Poll& poll) {
  constexpr std::uint64_t kRowsBetweenPolls = 65536;
  RowCopy copy = make_room_for_rows(budget, data, count);
  for (std::uint64_t first = 0; first < count; first += kRowsBetweenPolls) {
    poll();
    copy_listed_rows(data, rows, first, std::min(count, first + kRowsBetweenPolls), nullptr, &copy);
  }
  return copy;
}

}  // namespace gpujoin
