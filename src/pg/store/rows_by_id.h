// Rows found by their ids, which lie in an array of the caller's: a hash table of row numbers.
#pragma once

#include <bit>

#include "pg/compat.h"

extern "C" {
#include "utils/memutils.h"
}

namespace gpujoin {

struct RowsById {
  const std::int64_t* ids;  ///< of the rows that are there
  std::uint32_t* rows;      ///< [places] counted from 1; 0: none
  std::uint64_t places;     ///< a power of two
};

inline std::uint64_t places_for(std::uint64_t rows) { return std::bit_ceil(2 * rows + 2); }

/// Bytes that a table for so many rows takes.
inline std::uint64_t rows_by_id_bytes(std::uint64_t rows) {
  return places_for(rows) * sizeof(std::uint32_t);
}

/// Room for so many rows in the memory context; none is there yet.
inline RowsById make_rows_by_id(MemoryContext context, const std::int64_t* ids,
                                std::uint64_t rows) {
  return {ids,
          static_cast<std::uint32_t*>(MemoryContextAllocExtended(
              context, rows_by_id_bytes(rows), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO)),
          places_for(rows)};
}

/// Where the row with this id stands, counted from 1; 0 there: it is not in the table, and may be
/// put there.
inline std::uint32_t* place_of_id(const RowsById& table, std::int64_t id) {
  const std::uint64_t hash = static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15u;
  std::uint64_t place = hash >> (64 - std::countr_zero(table.places));
  while (table.rows[place] != 0 && table.ids[table.rows[place] - 1] != id)
    place = (place + 1) & (table.places - 1);
  return &table.rows[place];
}

}  // namespace gpujoin
