#include "service/protocol/shared_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace gpujoin::service {
namespace {

constexpr std::uint64_t kPage = 4096;

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

Status lacks(const char* what) {
  return make_status(StatusCode::kOutOfMemory, nullptr, "could not get %s: %s", what,
                     std::strerror(errno));
}

std::uint64_t mapped_bytes(std::uint64_t bytes) {
  return whole_pages(std::max<std::uint64_t>(bytes, 1));
}

/// Maps region->file and keeps nothing where that fails.
Status map(SharedRegion* region, std::uint64_t reserved, int protection, int sharing) {
  void* const base =
      mmap(nullptr, mapped_bytes(reserved), protection, sharing | MAP_NORESERVE, region->file, 0);
  if (base == MAP_FAILED) {
    const Status status = lacks("address space for shared memory");
    close(region->file);
    *region = {};
    return status;
  }
  region->base = static_cast<unsigned char*>(base);
  region->reserved = mapped_bytes(reserved);
  return {};
}

/// Maps what another process has made. `seals` are those that it must have.
Status map_sealed(int file, std::uint64_t bytes, int seals, int sharing, SharedRegion* region) {
  *region = {};
  struct stat state;
  const int there = fcntl(file, F_GET_SEALS);
  if (fstat(file, &state) != 0 || there < 0 || (there & seals) != seals ||
      static_cast<std::uint64_t>(state.st_size) < bytes) {
    close(file);
    return make_status(StatusCode::kInvalidArgument, nullptr,
                       "shared memory is smaller than its message says, or may change");
  }
  region->file = file;
  region->bytes = static_cast<std::uint64_t>(state.st_size);
  return map(region, region->bytes, PROT_READ, sharing);
}

}  // namespace

Status create_region(const char* name, std::uint64_t reserved, SharedRegion* region) {
  *region = {};
  region->file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (region->file < 0) return lacks("a descriptor for shared memory");
  // Whoever maps it relies on its size.
  if (fcntl(region->file, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    const Status status = lacks("shared memory that keeps its size");
    close(region->file);
    *region = {};
    return status;
  }
  return map(region, reserved, PROT_READ | PROT_WRITE, MAP_SHARED);
}

Status grow_region(SharedRegion* region, std::uint64_t bytes) {
  if (bytes <= region->bytes) return {};
  const std::uint64_t wanted = whole_pages(bytes);
  if (wanted > region->reserved)
    return make_status(StatusCode::kOutOfMemory, nullptr,
                       "shared memory has room for %llu bytes, and %llu are needed",
                       static_cast<unsigned long long>(region->reserved),
                       static_cast<unsigned long long>(bytes));
  // A signal may undo what the call has allocated so far, so it is little.
  constexpr std::uint64_t kPiece = std::uint64_t{64} << 20;
  while (region->bytes < wanted) {
    const std::uint64_t piece = std::min(kPiece, wanted - region->bytes);
    const int code =
        posix_fallocate(region->file, static_cast<off_t>(region->bytes), static_cast<off_t>(piece));
    if (code == EINTR) continue;
    if (code != 0) {
      errno = code;
      return lacks("shared memory");
    }
    region->bytes += piece;
  }
  return {};
}

bool seal_region(SharedRegion* region) {
  const int seals = fcntl(region->file, F_GET_SEALS);
  if (seals < 0) return false;
  if ((seals & F_SEAL_WRITE) != 0) return true;
  // The kernel seals no file that is mapped shared and writable. A private mapping shows the same
  // pages. It is made elsewhere first: where that fails the memory is still there.
  const std::uint64_t bytes = mapped_bytes(region->bytes);
  void* const made =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, region->file, 0);
  if (made == MAP_FAILED) return false;
  if (mremap(made, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, region->base) == MAP_FAILED) {
    munmap(made, bytes);
    return false;
  }
  if (region->reserved > bytes) munmap(region->base + bytes, region->reserved - bytes);
  region->reserved = bytes;
  return fcntl(region->file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW) == 0;
}

Status map_region(int file, std::uint64_t bytes, SharedRegion* region) {
  return map_sealed(file, bytes, F_SEAL_SHRINK, MAP_SHARED, region);
}

Status map_sealed_region(int file, std::uint64_t bytes, SharedRegion* region) {
  // Before Linux 6.7 a file that is sealed against writing and opened for it has no shared mapping.
  return map_sealed(file, bytes, F_SEAL_SHRINK | F_SEAL_WRITE, MAP_PRIVATE, region);
}

Status open_region(int pid, int file, std::uint64_t reserved, bool writable, SharedRegion* region) {
  *region = {};
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, file);
  struct stat state;
  region->file = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  if (region->file < 0 || fstat(region->file, &state) != 0) {
    const Status status =
        make_status(StatusCode::kUnavailable, nullptr,
                    "could not open the memory of process %d: %s", pid, std::strerror(errno));
    if (region->file >= 0) close(region->file);
    *region = {};
    return status;
  }
  region->bytes = static_cast<std::uint64_t>(state.st_size);
  return map(region, reserved, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED);
}

void close_region(SharedRegion* region) {
  if (region->file < 0) return;
  munmap(region->base, region->reserved);
  close(region->file);
  *region = {};
}

}  // namespace gpujoin::service
