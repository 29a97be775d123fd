// Points on their way into a Dataset: an array that grows row by row within the memory limit.
// Beyond the limit there is an error, or the rows go to a temporary file, from which blocks of them
// come back.
#pragma once

#include "engine/dataset.h"
#include "pg/compat.h"

extern "C" {
#include "storage/buffile.h"
}

namespace gpujoin {

/// Consecutive points that a temporary file holds.
struct PointBlock {
  std::uint64_t rows;
  std::uint32_t dims;  ///< when they were written: boxes may be widened later
  int segment;
  off_t offset;
  std::int64_t first_id;
};

/// The creator sets the first six members and zeroes the rest.
struct PointBuffer {
  MemoryContext context;  ///< where the points lie
  const char* source;     ///< whose rows they are, for messages: relation "t"
  std::uint64_t limit;    ///< bytes they may take
  ScalarType scalar;
  bool scored;         ///< each row has a score, which the caller of add_point() sets
  bool spills;         ///< rows beyond the limit go to a file, their scores nowhere
  std::uint32_t dims;  ///< set before the first row
  char* coordinates;
  std::int64_t* ids;
  double* scores;
  std::uint64_t rows;
  std::uint64_t capacity;
  BufFile* file;       ///< null: all rows are in memory
  PointBlock* blocks;  ///< [block_count] in the order of their rows
  int block_count;     ///< 0, or at least 2
};

/// Returns where the coordinates of a new row go. Raises an error when it does not fit.
char* add_point(PointBuffer* buffer, std::int64_t id);

/// Makes boxes of fewer dimensions ones of `dims`, at 0 in those they lacked.
void widen_boxes(PointBuffer* buffer, std::uint32_t dims);

/// Ends the points and returns them; room that is left over is given back. No points where they
/// went to a file.
Dataset finish_points(PointBuffer* buffer);

/// The points of a block, valid until the next call.
Dataset load_block(PointBuffer* buffer, int block);

/// Forgets the points; their file is closed.
void close_points(PointBuffer* buffer);

/// Bytes that such a dataset occupies.
std::uint64_t dataset_bytes(const Dataset& data);

}  // namespace gpujoin
