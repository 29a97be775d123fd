// The view of one side's points that an engine is given.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "engine/request/row_file.h"

namespace gpujoin {

/// What the numbers of a row are. kBits: words of 64 bits, whatever bits a row has fewer are 0.
enum class ScalarType : std::int32_t { kFloat32, kFloat64, kBits };

inline constexpr std::uint32_t kOneChunk = 63;  ///< Dataset::chunk_bits where there is one chunk

/// What rows are known by beyond one join: those of one identity and version are the same in all
/// joins, coordinates, ids and scores. Engines may keep what they make of them, of one version at a
/// time.
struct DatasetKey {
  std::uint64_t identity = 0;  ///< 0: known by nothing
  std::uint64_t version = 0;
  std::uint64_t base = 0;  ///< an earlier version that others use still, or this one

  bool operator==(const DatasetKey&) const = default;
};

/// Points, owned by the caller and unchanged while a join on them is open. Coordinates lie in
/// chunks of consecutive rows, each row-major; any finite or non-finite values.
struct Dataset {
  const void* first_chunk;  ///< [rows of the chunk][dims] of type `scalar`; null: in a file
  const std::int64_t* ids;  ///< [rows], what results name rows by; null: their positions
  std::uint64_t rows;       ///< at most 2^32 - 64
  std::uint32_t dims;       ///< numbers or words a row: 1 .. kMaxDimensions, or of boxes 2 .. 2 *
                            ///< kMaxBoxDimensions; ignored when rows is 0
  ScalarType scalar;
  const double* scores = nullptr;        ///< [rows] finite; for the best pairs, duplicates, trees
  std::uint32_t chunk_bits = kOneChunk;  ///< chunks have 2^chunk_bits rows, the last one fewer
  const void* const* more_chunks = nullptr;  ///< the chunks after the first

  // Of data that does not fit in the caller's memory: its chunks lie in a file.
  const RowFile* file = nullptr;          ///< null: in memory
  const std::uint64_t* places = nullptr;  ///< [chunks] where in the file: ids, then coordinates,
  bool scores_in_file = false;            ///< and scores, where this is set
  bool by_position = false;  ///< results name rows by their positions, not by the ids in the file
  const Dataset* sample = nullptr;  ///< some rows, spread over all, in memory

  DatasetKey key = {};

  const double* keys = nullptr;  ///< [rows][key_columns] of JoinRequest::keys; of data in memory
  std::uint32_t key_columns = 0;

  // Further columns of data in a file.
  const std::uint64_t* key_places = nullptr;  ///< [key_columns][chunks] where a chunk's keys of a
                                              ///< column lie
  const std::uint64_t* sum_places = nullptr;  ///< [columns][chunks] likewise of the columns that
                                              ///< PairSums has of the side: left, right, integers
};

inline constexpr std::uint64_t kMaxRows = (std::uint64_t{1} << 32) - 64;

inline std::uint64_t scalar_bytes(ScalarType scalar) {
  return scalar == ScalarType::kFloat32 ? 4 : 8;
}

/// Bytes of a row's coordinates.
inline std::uint64_t point_bytes(const Dataset& data) {
  return data.dims * scalar_bytes(data.scalar);
}

inline std::uint64_t chunk_count(const Dataset& data) {
  return data.rows == 0 ? 0 : ((data.rows - 1) >> data.chunk_bits) + 1;
}

inline std::uint64_t rows_of_chunk(const Dataset& data, std::uint64_t number) {
  return std::min(std::uint64_t{1} << data.chunk_bits, data.rows - (number << data.chunk_bits));
}

/// What a sample of the data is drawn from: the data, or those of its rows that are in memory.
inline const Dataset& in_memory(const Dataset& data) {
  return data.file == nullptr ? data : *data.sample;
}

inline bool has_scores(const Dataset& data) {
  return data.scores != nullptr || data.scores_in_file;
}

/// The same rows, named by their positions.
inline Dataset unnamed(Dataset data) {
  data.ids = nullptr;
  data.by_position = data.file != nullptr;
  return data;
}

// What follows is for data in memory.

inline const unsigned char* chunk(const Dataset& data, std::uint64_t number) {
  return static_cast<const unsigned char*>(number == 0 ? data.first_chunk
                                                       : data.more_chunks[number - 1]);
}

/// The coordinates of a row.
inline const void* point(const Dataset& data, std::uint64_t row) {
  const std::uint64_t place = row & ((std::uint64_t{1} << data.chunk_bits) - 1);
  return chunk(data, row >> data.chunk_bits) + place * point_bytes(data);
}

/// The same, where Dataset::scalar is T.
template <class T>
const T* point(const Dataset& data, std::uint64_t row) {
  const std::uint64_t place = row & ((std::uint64_t{1} << data.chunk_bits) - 1);
  return reinterpret_cast<const T*>(chunk(data, row >> data.chunk_bits)) + place * data.dims;
}

/// One coordinate, widened exactly; a word of bits as a number, rounded.
inline double coordinate(const Dataset& data, std::uint64_t row, std::uint32_t column) {
  if (data.scalar == ScalarType::kBits)
    return static_cast<double>(point<std::uint64_t>(data, row)[column]);
  return data.scalar == ScalarType::kFloat32 ? static_cast<double>(point<float>(data, row)[column])
                                             : point<double>(data, row)[column];
}

/// What results name a row by.
inline std::int64_t id_of(const Dataset& data, std::uint64_t row) {
  return data.ids != nullptr ? data.ids[row] : static_cast<std::int64_t>(row);
}

/// A row's key of a column.
inline double key_of(const Dataset& data, std::uint64_t row, std::uint32_t column) {
  return data.keys[row * data.key_columns + column];
}

/// Rows with a NaN or infinite coordinate match nothing, nor do those with such a key.
inline bool is_finite_row(const Dataset& data, std::uint64_t row) {
  for (std::uint32_t d = 0; d < data.dims; ++d)
    if (!std::isfinite(coordinate(data, row, d))) return false;
  for (std::uint32_t k = 0; k < data.key_columns; ++k)
    if (!std::isfinite(key_of(data, row, k))) return false;
  return true;
}

}  // namespace gpujoin
