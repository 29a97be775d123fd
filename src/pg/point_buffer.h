// Points on their way into a Dataset: an array that grows row by row within the memory limit.
#pragma once

#include "engine/dataset.h"
#include "pg/compat.h"
#include "pg/vector_datum.h"

namespace gpujoin {

/// Zeroed but for the first five members by who makes it.
struct PointBuffer {
  MemoryContext context;  ///< where the points lie
  const char* source;     ///< whose rows they are, for messages: relation "t"
  std::uint64_t limit;    ///< bytes they may take
  ScalarType scalar;
  bool scored;         ///< each row has a score, which who adds it sets
  std::uint32_t dims;  ///< set before the first row
  char* coordinates;
  std::int64_t* ids;
  double* scores;
  std::uint64_t rows;
  std::uint64_t capacity;
};

/// Returns where the coordinates of a new row go. Raises an error when it does not fit.
char* add_point(PointBuffer* buffer, std::int64_t id);

/// Adds what `view` shows, which has no problem and as many dimensions as the buffer. float4
/// elements are widened where the buffer is of float8.
void add_vector(PointBuffer* buffer, std::int64_t id, const VectorView& view, bool float4);

/// Makes boxes of fewer dimensions ones of `dims`, at 0 in those they lacked.
void widen_boxes(PointBuffer* buffer, std::uint32_t dims);

/// The points; room that is left over is given back.
Dataset finish_points(PointBuffer* buffer);

/// Bytes that a dataset so made occupies.
std::uint64_t dataset_bytes(const Dataset& data);

}  // namespace gpujoin
