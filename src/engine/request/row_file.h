// A file of the caller's for rows that do not fit in memory. Engines that join in another process
// than the caller's have none.
#pragma once

#include <cstdint>

#include "engine/request/status.h"

namespace gpujoin {

/// Bytes are appended, and read again from any place. Both functions are called by the thread that
/// calls the join, return what went wrong, kCallerFailed above all, and throw nothing.
struct RowFile {
  void* context;
  /// Appends so many bytes; *place is where they begin.
  Status (*write)(void* context, const void* bytes, std::uint64_t count, std::uint64_t* place);
  Status (*read)(void* context, std::uint64_t place, void* bytes, std::uint64_t count);
};

}  // namespace gpujoin
