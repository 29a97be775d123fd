// Buffers that are as long as a side has rows, in huge pages where the system has them: rows lie
// anywhere, and each small page costs a fault when it is first written.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "engine/request/buffer.h"

namespace gpujoin::cpu {

/// Throws as Buffer does.
template <class T>
Buffer<T> large_buffer(MemoryBudget& budget, std::size_t size) {
  constexpr std::uintptr_t kHugePage = std::uintptr_t{1} << 21;
  Buffer<T> buffer(budget, size);
  const auto begin = reinterpret_cast<std::uintptr_t>(buffer.begin());
  const auto end = reinterpret_cast<std::uintptr_t>(buffer.end());
  const std::uintptr_t first = (begin + kHugePage - 1) & ~(kHugePage - 1);
  const std::uintptr_t last = end & ~(kHugePage - 1);
  // Advice: where it is not taken, the pages are small ones.
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
  return buffer;
}

}  // namespace gpujoin::cpu
