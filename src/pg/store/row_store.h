// Rows of one side of a join, kept until its pairs come: some columns of each, by row number. They
// lie in memory as long as the join's budget lasts, and then in a temporary file, from which the
// rows that are wanted next are read together, each once and in the order of the file.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "executor/tuptable.h"
#include "storage/buffile.h"
}

namespace gpujoin {

struct RowStore;

/// The memory that the stores of a join share. The largest of them moves to a file where the budget
/// is exceeded; from then on the stores in memory have one half of it, and what is read from files
/// the rest.
struct RowBudget {
  Size limit;
  Size taken;        ///< by stores in memory
  RowStore* stores;  ///< a list
  bool spilled;      ///< some rows are in a file
};

/// Row number that no row has.
inline constexpr std::uint64_t kNoRow = ~std::uint64_t{0};

/// Rows of a store in a file that are in memory at the moment, or soon will be.
struct WantedRows {
  std::uint64_t* bits;    ///< one for each row of the store; null: none was ever wanted
  std::uint32_t* before;  ///< rows that are wanted before those of a word of `bits`
  std::uint64_t first_word, end_word;  ///< the words between have bits, others have none
  std::uint64_t rows;
  Size tuple_bytes;
  Datum* values;  ///< [rows][natts] once they were read
  bool* nulls;    ///< likewise
  MemoryContext context;
};

struct RowStore {
  MemoryContext context;   ///< holds the values, and nothing else
  TupleDesc columns;       ///< of the values kept
  AttrNumber* attributes;  ///< [columns->natts] where they stand in the rows that come
  bool by_value;           ///< no value points to anything: in a file rows are records
  RowBudget* budget;
  RowStore* next;  ///< in the budget's list
  std::uint64_t rows;
  std::uint64_t capacity;
  Size bytes;             ///< of memory taken
  Datum* values;          ///< [rows][natts] while in memory
  bool* nulls;            ///< likewise
  char* block;            ///< room for small values that they point to
  Size block_left;        ///< bytes from there on
  BufFile* file;          ///< null while in memory
  std::uint64_t end;      ///< its size in bytes
  std::uint64_t* places;  ///< [rows] where in the file; null: rows are records
  WantedRows wanted;
  std::uint64_t fetched;        ///< the first row that was fetched of the file
  std::uint64_t fetched_count;  ///< rows that were: one, to `values` and `nulls`, or
  char* records;                ///< records
  MemoryContext fetched_context;
};

/// A store in a child of `parent` for these attributes of rows with the descriptor `input`.
RowStore* create_row_store(MemoryContext parent, RowBudget* budget, TupleDesc input,
                           const AttrNumber* attributes, int count);

/// Appends a row, whose attributes are given in their order. May move stores of the budget to
/// files.
void store_row(RowStore* store, const Datum* values, const bool* nulls);

/// Gives back memory that was set aside for more rows.
void trim_row_store(RowStore* store);

/// Asks for a row of a store in a file, and returns how much more memory the rows will take for it.
Size want_row(RowStore* store, std::uint64_t row);

/// How much memory a row takes on average that is read from a file; 0: they are in memory.
Size spilled_bytes(const RowStore* store);

/// Reads the rows that were asked for: fetch_row() finds them in memory.
void read_wanted_rows(RowStore* store);

/// Forgets the rows that were asked for.
void forget_wanted_rows(RowStore* store);

const Datum* fetch_spilled_row(RowStore* store, std::uint64_t row, const bool** nulls);

/// The values of a row. One that was not asked for is read on its own where it lies in a file, and
/// is valid until the next such row.
inline const Datum* fetch_row(RowStore* store, std::uint64_t row, const bool** nulls) {
  if (store->file != nullptr) return fetch_spilled_row(store, row, nulls);
  const std::uint64_t natts = static_cast<std::uint64_t>(store->columns->natts);
  *nulls = store->nulls + row * natts;
  return store->values + row * natts;
}

/// Has the processor fetch a row that will be wanted soon.
inline void expect_row(const RowStore* store, std::uint64_t row) {
  const std::uint64_t natts = static_cast<std::uint64_t>(store->columns->natts);
  if (store->file != nullptr || natts == 0) return;
  __builtin_prefetch(store->values + row * natts);
  __builtin_prefetch(store->nulls + row * natts);
}

/// The same of what its values point to, after the row itself.
inline void expect_values(const RowStore* store, std::uint64_t row) {
  const int natts = store->columns->natts;
  if (store->file != nullptr) return;
  const std::uint64_t first = row * static_cast<std::uint64_t>(natts);
  for (int i = 0; i < natts; ++i)
    if (!TupleDescAttr(store->columns, i)->attbyval && !store->nulls[first + i])
      __builtin_prefetch(DatumGetPointer(store->values[first + i]));
}

/// Forgets all rows.
void clear_row_store(RowStore* store);

}  // namespace gpujoin
