// Whole reads and writes of PostgreSQL's temporary files, in every release.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "storage/buffile.h"
}

namespace gpujoin {

/// Reads so many bytes; fewer are an error.
inline void read_exactly(BufFile* file, void* to, std::size_t bytes) {
#if PG_VERSION_NUM >= 160000
  BufFileReadExact(file, to, bytes);
#else
  if (BufFileRead(file, to, bytes) != bytes)
    ereport(ERROR, (errcode_for_file_access(), errmsg("could not read from a temporary file")));
#endif
}

/// Writes all bytes, or raises an error.
inline void write_exactly(BufFile* file, const void* from, std::size_t bytes) {
  BufFileWrite(file, const_cast<void*>(from), bytes);
}

/// Goes to a place, counted in bytes from the beginning.
inline void seek_exactly(BufFile* file, std::uint64_t place) {
  constexpr int kSegmentBits = 30;  // of a BufFile's files
  const off_t offset = static_cast<off_t>(place & ((std::uint64_t{1} << kSegmentBits) - 1));
  if (BufFileSeek(file, static_cast<int>(place >> kSegmentBits), offset, SEEK_SET) != 0)
    ereport(ERROR, (errcode_for_file_access(), errmsg("could not seek in a temporary file")));
}

}  // namespace gpujoin
