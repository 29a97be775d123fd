// Rows that updates gave another ctid, but no other value of the column that is kept: the service
// has the value under the ctid before, so it need not be read. That pays where the value is stored
// out of line (TOAST). Why the value is the same stands in moved_rows.cpp.
#pragma once

#include "pg/reading/heap_blocks.h"

extern "C" {
#include "utils/hsearch.h"
}

namespace gpujoin {

/// Plain data: an error may drop it.
struct MovedRows {
  MemoryContext context;
  AttrNumber column;
  HTAB* updates;            ///< of rows that are kept, by the ctids of the rows that came of them
  service::MovedRow* rows;  ///< [count] in the order of their blocks
  std::uint64_t count, room;
};

/// Begins to look for such rows in the current memory context. Returns null if values of the column
/// are never out of line.
MovedRows* start_moved_rows(Relation relation, AttrNumber column);

/// Notes which tuples of a block were updated, and moves those that are known to have come of
/// updates from `seen` to MovedRows::rows.
void find_moved_rows(MovedRows* moved, const HeapBlocks& heap, SeenTuples* seen);

}  // namespace gpujoin
