// Points on their way into a Dataset: chunks that are filled row by row within the memory limit.
// Beyond the limit there is an error, or all chunks go to a file.
#pragma once

#include "engine/request/dataset.h"
#include "pg/compat.h"
#include "pg/store/shared_points.h"
#include "pg/store/spill_file.h"

namespace gpujoin {

/// A chunk in a file.
struct WrittenChunk {
  std::uint64_t place;
  std::int64_t first_id;
  std::uint32_t dims;  ///< when it was written: boxes may be widened later
};

/// Every `step`-th row of the chunks in a file, in memory.
struct RowSample {
  char* coordinates;  ///< [room][dims]
  std::uint64_t room, rows, step;
};

struct PlaneBoxes;

/// Chunks of points in the file.
struct WrittenChunks {
  WrittenChunk* chunks;  ///< [room]
  std::uint64_t count, room;
  std::uint64_t* places;  ///< [count], once finished
};

/// The creator sets the first eight members and zeroes the rest.
struct PointBuffer {
  MemoryContext context;  ///< where the points lie
  const char* source;     ///< whose rows they are, for messages: relation "t"
  std::uint64_t limit;    ///< bytes they may take
  ScalarType scalar;
  bool scored;       ///< each row has a score
  SpillFile* spill;  ///< where rows beyond the limit go; null: there is an error
  bool shares;       ///< the points are to lie in memory that gpujoin_service can map
  PlaneBoxes*
      plane_boxes;  ///< where the boxes go that points are the middles of; null: there are none

  std::uint32_t dims;  ///< set before the first row
  std::uint64_t rows;
  std::uint64_t first;       ///< the first row in memory; those before it are in the file
  std::uint64_t room;        ///< up to this row there is room in memory
  std::uint32_t chunk_bits;  ///< as in Dataset, set with the first row
  char** chunks;             ///< [chunks in memory] coordinates
  std::uint64_t chunk_room;
  std::int64_t* ids;  ///< [named] of the rows in memory
  double* scores;     ///< likewise
  std::uint64_t named;
  SharedPoints* shared;   ///< where the three arrays are; null: in the context
  std::uint32_t workers;  ///< parallel workers that helped to fill it

  WrittenChunks written;
  RowSample sample;
  Dataset sample_view;  ///< likewise
  Dataset loaded;       ///< the chunk in memory after that
  std::uint64_t loaded_number;
};

/// Returns where the coordinates of a new row go. Raises an error when it does not fit.
char* add_point(PointBuffer* buffer, std::int64_t id);

/// The coordinates of the row that was added last.
const char* last_point(const PointBuffer& buffer);

/// Forgets that row.
inline void drop_last_point(PointBuffer* buffer) { --buffer->rows; }

/// Sets the score of the row that was added last.
void set_score(PointBuffer* buffer, double score);

/// Makes boxes of fewer dimensions ones of `dims`, at 0 in those they lacked.
void widen_boxes(PointBuffer* buffer, std::uint32_t dims);

/// Forgets the rows, none of which went to a file, and keeps their memory for others of as many
/// numbers.
inline void clear_points(PointBuffer* buffer) { buffer->rows = 0; }

/// Copies the rows, none of which went to a file, one after the other to these places.
void copy_rows(const PointBuffer& buffer, unsigned char* coordinates, std::int64_t* ids,
               double* scores);

/// Takes rows of `dims` numbers that lie in memory of its own, from its beginning, as if they had
/// been added to the empty buffer, or to the first of them in the same memory. More can be added.
void take_rows(PointBuffer* buffer, SharedPoints* shared, std::uint32_t dims, std::uint64_t rows);

/// Ends the points and returns them; room that is left over is given back. The result refers to the
/// buffer.
Dataset finish_points(PointBuffer* buffer);

/// Whether rows went to the file.
inline bool is_spilled(const PointBuffer& buffer) { return buffer.written.count > 0; }

/// The finished points that have the point with this id, *position among them; their ids ascend.
/// Null when there is no such point. What is returned holds until the next call.
const Dataset* find_point(PointBuffer* buffer, const Dataset& points, std::int64_t id,
                          std::uint64_t* position);

/// A chunk of finished points that went to the file. It holds until the next call, or until
/// find_point() looks for a point of another chunk.
const Dataset& load_points(PointBuffer* buffer, std::uint64_t chunk);

/// Calls visit() for the finished points: for all of them, or where they lie in a file for one
/// chunk after the other. With `changes` it may change their coordinates, also those of the sample
/// in memory; chunks are written anew.
void visit_points(PointBuffer* buffer, const Dataset& points, bool changes,
                  void (*visit)(const Dataset& points, void* context), void* context);

/// Forgets the points. What the file has of them stays there, unused.
void forget_points(PointBuffer* buffer);

/// How many rows like those of the buffer this limit allows.
std::uint64_t affordable_rows(const PointBuffer& buffer, std::uint64_t limit);

/// Bytes of memory that the points take.
std::uint64_t held_bytes(const PointBuffer& buffer);

}  // namespace gpujoin
