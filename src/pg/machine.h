// What this process may use of the machine: processors and memory, as affinity and control groups
// bound them.
#pragma once

#include <cstdint>

namespace gpujoin {

/// Processors that this process may keep busy, at least 1. Found once.
int machine_threads();

/// Bytes of memory that this process may use, of the machine or of the smallest control group
/// around it. Found once.
std::uint64_t machine_memory_bytes();

}  // namespace gpujoin
