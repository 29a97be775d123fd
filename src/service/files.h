// What the data directory says of tables and databases, without knowing what its files hold.
#pragma once

#include <sys/stat.h>

#include <cerrno>

namespace gpujoin::service {

/// Whether nothing is at the path any more.
inline bool is_gone(const char* path) {
  struct stat state;
  return stat(path, &state) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

/// Whether a file of rows has none any more: it was removed, or cut to nothing, as PostgreSQL does
/// when a table is dropped or rewritten, before it removes the file.
inline bool is_gone_or_empty(const char* path) {
  struct stat state;
  return stat(path, &state) == 0 ? state.st_size == 0 : is_gone(path);
}

}  // namespace gpujoin::service
