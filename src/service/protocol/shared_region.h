// Memory that a backend and the service share: an anonymous file that both map. It grows in place,
// so that addresses in it hold. Plain data: a backend's may be dropped without a destructor, if
// close_region() is called in time.
#pragma once

#include <cstdint>

#include "engine/request/status.h"

namespace gpujoin::service {

struct SharedRegion {
  int file = -1;  ///< a descriptor; -1: there is no region
  unsigned char* base = nullptr;
  std::uint64_t bytes = 0;     ///< that have memory behind them
  std::uint64_t reserved = 0;  ///< of address space: the most that it can grow to
};

/// Makes a region of no bytes with address space for `reserved`. `name` is for /proc. kOutOfMemory
/// where the system has no descriptor or address space.
Status create_region(const char* name, std::uint64_t reserved, SharedRegion* region);

/// Makes it at least so large; new bytes are 0. kOutOfMemory where the system has no memory: a
/// page is reserved here and not when it is first touched, which would be a signal.
Status grow_region(SharedRegion* region, std::uint64_t bytes);

/// Makes the memory read-only for every process from now on, which the kernel guarantees to whoever
/// maps it. Addresses hold, but the mapping becomes private: what this process writes there later,
/// nobody else sees. Returns false if the system refuses; then the region must not be sent.
bool seal_region(SharedRegion* region);

/// Maps a region that another process has made, for reading, and takes the descriptor. Its size is
/// what it is now. kInvalidArgument where it has fewer than `bytes`, or might shrink while it is
/// used.
Status map_region(int file, std::uint64_t bytes, SharedRegion* region);

/// The same for a region that seal_region() has sealed: its bytes cannot change. kInvalidArgument
/// where somebody might still write them.
Status map_sealed_region(int file, std::uint64_t bytes, SharedRegion* region);

/// Maps the region that another process of this user has by that descriptor, with address space for
/// `reserved`. kUnavailable where the system does not allow it.
Status open_region(int pid, int file, std::uint64_t reserved, bool writable, SharedRegion* region);

/// Gives memory and descriptor back. A region that is none is left alone.
void close_region(SharedRegion* region);

}  // namespace gpujoin::service
