// Rows of a table whose pairs are found before the rows are read: their numbers are their ctids,
// and each is fetched when a result needs it. Where many are, all are read at once, in the order of
// their ctids. Those that have been found before may be marked.
#pragma once

#include "engine/request/check_batch.h"
#include "pg/compat.h"

extern "C" {
#include "access/tableam.h"
#include "catalog/index.h"
#include "executor/tuptable.h"
#include "storage/itemptr.h"
#include "utils/rel.h"
#include "utils/snapshot.h"
}

namespace gpujoin {

/// The number of a row is its ctid, as itemptr_encode() makes an integer of it.
struct LateRows {
  MemoryContext context;  ///< of what follows
  Relation relation;
  Snapshot snapshot;
  AttrNumber last_column;  ///< columns up to it are deformed; the caller's to raise
  TupleTableSlot* slot;    ///< the row that was fetched or scanned last
  std::int64_t held;       ///< its number; -1: none
  std::uint64_t fetched;   ///< rows so far
  TableScanDesc scan;      ///< of next_late_row(); null: not begun
  std::uint64_t* marks;    ///< [mark_words] a bit for each place of a block; null: none is marked
  std::uint64_t mark_words;
  std::uint64_t marked;  ///< rows
};

/// Where rows of a scan stand among all of it, by their ctids.
struct RowPlaces {
  MemoryContext context;
  std::uint64_t* first;    ///< [block_room] the first row of a block, or of a later one
  std::uint16_t* offsets;  ///< [rows] ascending within a block
  std::uint64_t blocks, block_room;
  std::uint64_t rows, row_room;
};

/// How many rows of so many may be fetched before a scan of all would have been faster: a row that
/// is fetched takes some four times as long as one that a scan finds, so that they took about half
/// of a scan.
inline std::uint64_t few_rows(std::uint64_t rows) { return 1000 + rows / 8; }

/// Rows that the snapshot sees of a relation that outlives them. In the current memory context,
/// but that they have to be closed.
LateRows* open_late_rows(Relation relation, Snapshot snapshot);

/// The numbers that rows of the table may have.
IdRange ids_of_table(const LateRows& rows);

/// Releases what the last row holds.
void close_late_rows(LateRows* rows);

/// The row, until another one is fetched. Raises an error where the snapshot sees none.
TupleTableSlot* fetch_late_row(LateRows* rows, std::int64_t number);

/// A column of a late row, maybe a system column.
inline Datum late_value(TupleTableSlot* row, AttrNumber attribute, bool* is_null) {
  return attribute > 0 ? slot_getattr(row, attribute, is_null)
                       : slot_getsysattr(row, attribute, is_null);
}

/// The next row of a scan of all, in the order of their ctids; null after the last one.
TupleTableSlot* next_late_row(LateRows* rows);

/// Has next_late_row() begin anew.
void restart_late_rows(LateRows* rows);

/// Marks a row of the table.
void mark_late_row(LateRows* rows, std::int64_t number);

bool is_marked(const LateRows& rows, std::int64_t number);

/// The first marked row after this one; from -1 on all of them. False after the last one.
bool next_marked(const LateRows& rows, std::int64_t* number);

/// Adds the next row of a scan.
void add_row_place(RowPlaces* places, std::int64_t number);

/// The place of a row that was added. Raises an error where none was added under this number.
std::uint64_t find_row_place(const RowPlaces& places, std::int64_t number);

}  // namespace gpujoin
