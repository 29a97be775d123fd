// Rows that the values of a column divide, and that do not fit in memory together: they lie in a
// file, or in memory where they are fewer than a chunk of it, sorted by these values, and some
// groups of them after the others are copied and joined. A group that does not fit is joined from a
// file of its own, as rows that nothing divides.
#pragma once

#include "engine/request/result.h"
#include "pg/reading/row_values.h"
#include "pg/store/point_buffer.h"
#include "pg/store/spill_file.h"

namespace gpujoin {

/// Zeroed, there are none.
struct DividedRows {
  Dataset all;         ///< in the file or in memory
  GroupEnds groups;    ///< of all
  std::uint64_t next;  ///< the first group that has not come yet
  std::uint64_t end;   ///< of all in the file
  PointBuffer some;    ///< the rows of the groups at hand
  double* keys;        ///< [their rows] the number of each one's group
  JoinStats before;    ///< what their predecessors' joins did
};

inline bool are_in_groups(const DividedRows& rows) { return rows.groups.count > 0; }

/// Begins with the first group again.
void rewind_groups(DividedRows* rows);

/// Bytes that these rows take beside those of `buffer`.
std::uint64_t held_bytes(const DividedRows& rows);

/// Brings the next groups, as many as fit in so many bytes, or one, and returns their rows; none
/// where there are no more. `buffer` has the rows of all. No engine may be at work on the groups
/// before.
Dataset next_groups(DividedRows* rows, PointBuffer* buffer, std::uint64_t limit);

}  // namespace gpujoin
