#include "service/region.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "service/failure.h"

namespace gpujoin::service {
namespace {

[[noreturn]] void fail(const char* what) {
  throw Failure{make_status(StatusCode::kOutOfMemory, nullptr, "could not get %s: %s", what,
                            std::strerror(errno))};
}

}  // namespace

Region::Region(const char* name, std::uint64_t bytes) {
  require(create_region(name, bytes, &region_));
  if (const Status status = grow_region(&region_, bytes); !status.ok()) {
    close_region(&region_);
    throw Failure{status};
  }
}

Region::Region(int file, std::uint64_t bytes) : is_sealed_(true) {
  require(map_sealed_region(file, bytes, &region_));
}

void Region::grow(std::uint64_t bytes) {
  if (bytes > region_.reserved) {
    constexpr std::uint64_t kPage = 4096;
    const std::uint64_t wanted = (bytes + kPage - 1) / kPage * kPage;
    void* const moved = mremap(region_.base, region_.reserved, wanted, MREMAP_MAYMOVE);
    if (moved == MAP_FAILED) fail("address space for shared memory");
    region_.base = static_cast<unsigned char*>(moved);
    region_.reserved = wanted;
  }
  require(grow_region(&region_, bytes));
}

int Region::open_for_reading() const {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", region_.file);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) fail("a descriptor for shared memory");
  return file;
}

}  // namespace gpujoin::service
