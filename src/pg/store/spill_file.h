// The temporary file of a join: points that do not fit in its memory, and what engines write while
// they join them. PostgreSQL's, so that temp_file_limit and temp_tablespaces hold.
#pragma once

#include "engine/request/row_file.h"
#include "pg/compat.h"

extern "C" {
#include "storage/fd.h"
}

namespace gpujoin {

struct SpillFile {
  RowFile functions;      ///< for engines, which see no PostgreSQL errors
  MemoryContext context;  ///< holds `error`
  File file;              ///< 0: nothing was written
  std::uint64_t end;      ///< its size in bytes
  ErrorData* error;       ///< what an engine's call raised
};

/// Prepares a file that is made when something is written. Nothing closes it at the end of a
/// transaction but close_spill_file().
void init_spill_file(SpillFile* spill, MemoryContext context);

/// Appends bytes and returns where they begin. Raises errors.
std::uint64_t write_spill(SpillFile* spill, const void* bytes, std::uint64_t count);

/// Reads bytes that were written. Raises errors.
void read_spill(SpillFile* spill, std::uint64_t place, void* bytes, std::uint64_t count);

/// Raises again what an engine's call raised, if anything.
void raise_spill_error(SpillFile* spill);

/// Closes and removes the file, if there is one. Raises nothing.
void close_spill_file(SpillFile* spill);

}  // namespace gpujoin
