// Rows on their way from and to a RowFile.
#pragma once

#include <cstdint>

#include "engine/request/dataset.h"
#include "engine/request/row_copy.h"

namespace gpujoin {

/// Thrown where a function of a RowFile fails; caught by the joins that use one.
struct RowFileFailed {
  Status status;
};

/// Throws RowFileFailed unless the status is ok.
void check_file(const Status& status);

/// Bytes of a row of the dataset with its id, score and keys, and with so many columns of 8 bytes.
std::uint64_t row_bytes(const Dataset& data, std::uint32_t columns = 0);

// What follows throws RowFileFailed.

/// Reads a chunk of data in a file, with the keys and columns that lie elsewhere, to the beginning
/// of the room.
void load_chunk(const Dataset& data, std::uint64_t number, RowCopy& room);

/// Reads the ids of such a chunk, and its scores, where the data has them: [rows of the chunk].
void load_names(const Dataset& data, std::uint64_t number, std::int64_t* ids, double* scores);

/// Appends so many rows of a copy, from `first` on; returns where they begin. They lie as a chunk
/// does, their keys and columns after it.
std::uint64_t write_rows(const RowFile& file, RowCopy& copy, std::uint64_t first,
                         std::uint64_t rows);

/// Reads rows that write_rows() has written.
void read_rows(const RowFile& file, std::uint64_t place, RowCopy& copy, std::uint64_t first,
               std::uint64_t rows);

/// The rows without what joins have no use for that are made of them: ids and scores.
inline Dataset bare_rows(const Dataset& data) {
  Dataset bare = unnamed(data);
  bare.scores = nullptr;
  bare.scores_in_file = false;
  return bare;
}

}  // namespace gpujoin
