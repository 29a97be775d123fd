// Tells from the data directory whether tables and databases are there, without reading any file.
#pragma once

#include <sys/stat.h>

#include <cerrno>

namespace gpujoin::service {

enum class FileState { kGone, kEmpty, kHasBytes };

/// What is at a path. What cannot be looked at is taken to have bytes.
inline FileState state_of(const char* path) {
  struct stat state;
  if (stat(path, &state) == 0) return state.st_size == 0 ? FileState::kEmpty : FileState::kHasBytes;
  return errno == ENOENT || errno == ENOTDIR ? FileState::kGone : FileState::kHasBytes;
}

}  // namespace gpujoin::service
