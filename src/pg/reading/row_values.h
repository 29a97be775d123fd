// One row's values -> a point or a box of a dataset; the errors for what is neither.
#pragma once

#include "pg/reading/relation.h"
#include "pg/reading/row_filter.h"
#include "pg/reading/value_ranks.h"
#include "pg/store/point_buffer.h"

namespace gpujoin {

/// The groups of rows that are sorted by the value that divides them.
struct GroupEnds {
  std::uint32_t* ends;  ///< [count] ascending: the row after each group's last
  std::uint64_t count, room;
};

/// Rows of a relation on their way into a dataset.
struct RowCollector {
  const SideColumns* columns;
  PointBuffer* points;
  ValueShape shape;
  ValueForm form;           ///< what becomes of values of one column
  bool* has_odd = nullptr;  ///< set where a row cannot take part, so that what is collected is of
                            ///< no use; null: that is an error
  ScanFilter filter = {};   ///< which rows are collected, where blocks are read
  bool* is_full = nullptr;  ///< set where rows that values divide do not fit in memory; likewise
  ValueRanks* ranks = nullptr;      ///< numbers of the values that divide rows; null: none do
  ValueRuns* runs = nullptr;        ///< or, of rows that are sorted by these,
  GroupEnds* groups = nullptr;      ///< their groups
  MemoryContext scratch = nullptr;  ///< for them
  double* partitions = nullptr;  ///< [partition_room] where values divide them: each row's number
  std::uint64_t partition_room = 0;
};

/// The type of the values from which add_row() makes numbers, points or boxes of a column of this
/// type: that of a cast, or the same.
Oid asked_type(const SideColumns& columns, Oid type);

/// Begins to collect rows of a relation, of values as they are stored. `groups`: rows come sorted
/// by the value that divides them, and these are noted; else null.
RowCollector start_collecting(const SideColumns* columns, PointBuffer* points,
                              GroupEnds* groups = nullptr);

/// Forgets the values that divide rows.
void end_dividing(RowCollector* rows);

/// Adds a row without NULLs. `values` are those of columns->attributes, numbers of type numeric as
/// float8 and boxes that reads_as_box() as PostgreSQL's. Raises errors for what cannot take part.
/// False where a value matches nothing, because it holds a NULL.
bool add_row(RowCollector* rows, std::int64_t id, const Datum* values);

/// Adds a row with its score, of columns->score_type or, for numeric, float8. False as add_row().
bool add_scored_row(RowCollector* rows, std::int64_t id, const Datum* values, Datum score);

/// Adds a row as a query returns it: `values` are those of id, vector or box, and, where rows are
/// scored, score. Leaves it out where one is NULL, but raises an error for the id; where the score
/// divides rows, NULL is a value.
void collect_row(RowCollector* rows, const Datum* values, const bool* nulls);

}  // namespace gpujoin
