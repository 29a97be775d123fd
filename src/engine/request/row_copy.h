// Some rows of a dataset as a dataset of their own.
#pragma once

#include <cstdint>
#include <cstring>

#include "engine/request/buffer.h"
#include "engine/request/dataset.h"

namespace gpujoin {

struct RowCopy {
  Buffer<unsigned char> coordinates;
  Buffer<std::int64_t> ids;
  Buffer<double> scores;
  Dataset view{};
};

/// Room for so many rows like those of the dataset; `view` is theirs. Throws what Buffer throws.
inline RowCopy make_room_for_rows(MemoryBudget& budget, const Dataset& like, std::uint64_t rows) {
  RowCopy room;
  room.coordinates = Buffer<unsigned char>(budget, rows * point_bytes(like));
  room.ids = Buffer<std::int64_t>(budget, rows);
  if (has_scores(like)) room.scores = Buffer<double>(budget, rows);
  room.view = {room.coordinates.data(), room.ids.data(), rows, like.dims, like.scalar,
               room.scores.data()};
  return room;
}

/// Copies the rows listed. They keep their ids; where the dataset has none, their positions in it
/// become their ids. Calls look() now and then. Throws what Buffer and look() throw.
template <class Look>
RowCopy copy_rows(MemoryBudget& budget, const Dataset& data, const std::uint32_t* rows,
                  std::uint64_t count, const Look& look) {
  constexpr std::uint64_t kRowsBetweenLooks = 65536;
  const std::uint64_t bytes = point_bytes(data);
  RowCopy copy = make_room_for_rows(budget, data, count);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i % kRowsBetweenLooks == 0) look();
    const std::uint64_t row = rows[i];
    std::memcpy(copy.coordinates.data() + i * bytes, point(data, row), bytes);
    copy.ids[i] = id_of(data, row);
    if (data.scores != nullptr) copy.scores[i] = data.scores[row];
  }
  return copy;
}

}  // namespace gpujoin
