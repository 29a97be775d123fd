#include "engine/joins/file_rows.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace gpujoin {
namespace {

/// Calls move(bytes, count) for the arrays of so many rows from `first` on, in the file's order.
template <class Move>
void for_each_array(RowCopy& copy, std::uint64_t first, std::uint64_t rows, const Move& move) {
  const std::uint64_t bytes = point_bytes(copy.view);
  move(copy.ids.data() + first, rows * sizeof(std::int64_t));
  move(copy.coordinates.data() + first * bytes, rows * bytes);
  if (copy.scores.size() > 0) move(copy.scores.data() + first, rows * sizeof(double));
  if (const std::uint64_t keys = copy.view.key_columns; keys > 0)
    move(copy.keys.data() + first * keys, rows * keys * sizeof(double));
  for (std::uint64_t c = 0; c < copy.column_count; ++c)
    move(copy.columns.data() + c * copy.view.rows + first, rows * sizeof(std::uint64_t));
}

void read(const RowFile& file, std::uint64_t place, void* to, std::uint64_t bytes) {
  check_file(file.read(file.context, place, to, bytes));
}

/// Reads a chunk's ids, or makes them.
void load_ids(const Dataset& data, std::uint64_t number, std::int64_t* ids) {
  const std::uint64_t rows = rows_of_chunk(data, number);
  if (data.by_position)
    std::iota(ids, ids + rows, static_cast<std::int64_t>(number << data.chunk_bits));
  else
    read(*data.file, data.places[number], ids, rows * sizeof(std::int64_t));
}

}  // namespace

void check_file(const Status& status) {
  if (!status.ok()) throw RowFileFailed{status};
}

std::uint64_t row_bytes(const Dataset& data, std::uint32_t columns) {
  return point_bytes(data) + sizeof(std::int64_t) + (has_scores(data) ? sizeof(double) : 0) +
         (data.key_columns + columns) * sizeof(double);
}

void load_chunk(const Dataset& data, std::uint64_t number, RowCopy& room) {
  const RowFile& file = *data.file;
  const std::uint64_t rows = rows_of_chunk(data, number), chunks = chunk_count(data);
  const std::uint64_t points = data.places[number] + rows * sizeof(std::int64_t);
  const std::uint32_t keys = data.key_columns;
  load_ids(data, number, room.ids.data());
  read(file, points, room.coordinates.data(), rows * point_bytes(data));
  if (has_scores(data))
    read(file, points + rows * point_bytes(data), room.scores.data(), rows * sizeof(double));
  std::vector<double> column(keys > 0 ? rows : 0);
  for (std::uint32_t k = 0; k < keys; ++k) {
    read(file, data.key_places[k * chunks + number], column.data(), rows * sizeof(double));
    for (std::uint64_t row = 0; row < rows; ++row) room.keys[row * keys + k] = column[row];
  }
  for (std::uint32_t c = 0; c < room.column_count; ++c)
    read(file, data.sum_places[c * chunks + number], room.columns.data() + c * room.view.rows,
         rows * sizeof(std::uint64_t));
}

void load_names(const Dataset& data, std::uint64_t number, std::int64_t* ids, double* scores) {
  const std::uint64_t rows = rows_of_chunk(data, number);
  load_ids(data, number, ids);
  if (has_scores(data))
    read(*data.file, data.places[number] + rows * (sizeof(std::int64_t) + point_bytes(data)),
         scores, rows * sizeof(double));
}

std::uint64_t write_rows(const RowFile& file, RowCopy& copy, std::uint64_t first,
                         std::uint64_t rows) {
  std::uint64_t begin = ~std::uint64_t{0};
  for_each_array(copy, first, rows, [&](const void* from, std::uint64_t bytes) {
    std::uint64_t place;
    check_file(file.write(file.context, from, bytes, &place));
    begin = std::min(begin, place);
  });
  return begin;
}

void read_rows(const RowFile& file, std::uint64_t place, RowCopy& copy, std::uint64_t first,
               std::uint64_t rows) {
  for_each_array(copy, first, rows, [&](void* to, std::uint64_t bytes) {
    read(file, place, to, bytes);
    place += bytes;
  });
}

}  // namespace gpujoin
