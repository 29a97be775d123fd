// Rows of one side of a join, kept until its pairs come: some columns of each, by row number. They
// lie in memory up to a limit, beyond it in a temporary file.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "executor/tuptable.h"
#include "storage/buffile.h"
}

namespace gpujoin {

/// Row number that no row has.
inline constexpr std::uint64_t kNoRow = ~std::uint64_t{0};

struct RowStore {
  MemoryContext context;   ///< holds the values, and nothing else
  TupleDesc columns;       ///< of the values kept
  AttrNumber* attributes;  ///< [columns->natts] where they stand in the rows that come
  Size limit;              ///< bytes of memory for values
  std::uint64_t rows;
  Size bytes;  ///< of memory taken
  std::uint64_t capacity;
  Datum* values;          ///< [rows][natts] while in memory
  bool* nulls;            ///< likewise
  BufFile* file;          ///< null while in memory
  std::int64_t* offsets;  ///< [rows] where in the file
  std::uint64_t fetched;  ///< row that `values` and `nulls` hold one of, when in a file
  MemoryContext fetched_context;
};

/// A store in a child of `parent` for these attributes of rows with the descriptor `input`.
RowStore* create_row_store(MemoryContext parent, TupleDesc input, const AttrNumber* attributes,
                           int count, Size limit);

/// Appends a row, whose attributes are given in their order.
void store_row(RowStore* store, const Datum* values, const bool* nulls);

/// Moves all rows to the file, when the limit is exceeded.
void spill_rows(RowStore* store);

void fetch_spilled_row(RowStore* store, std::uint64_t row);

/// The values of a row, valid until the next call.
inline const Datum* fetch_row(RowStore* store, std::uint64_t row, const bool** nulls) {
  const std::uint64_t natts = static_cast<std::uint64_t>(store->columns->natts);
  if (store->file == nullptr) {
    *nulls = store->nulls + row * natts;
    return store->values + row * natts;
  }
  if (store->fetched != row) fetch_spilled_row(store, row);
  *nulls = store->nulls;
  return store->values;
}

/// Forgets all rows.
void clear_row_store(RowStore* store);

}  // namespace gpujoin
