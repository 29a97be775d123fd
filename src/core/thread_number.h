// The number of a thread among all threads of a launch.
#pragma once

#include <cstdint>

#include "core/portability.h"

namespace gpujoin {

/// 64 bits wide: with blocks of 256 threads a product of 32 bits is 0 again from block 2^24 on.
GPUJOIN_HD constexpr std::uint64_t thread_number(std::uint32_t block, std::uint32_t block_threads,
                                                 std::uint32_t thread) {
  return std::uint64_t{block} * block_threads + thread;
}

}  // namespace gpujoin
