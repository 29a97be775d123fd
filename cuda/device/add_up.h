// Prefix sums of counts, on a device.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/device/memory.h"

namespace gpujoin::cuda {

/// offsets[i] = counts[0] + .. + counts[i - 1], of `items`. Asynchronous. Throws CudaError or
/// MemoryLimitExceeded.
void add_up(MemoryBudget& budget, const std::uint32_t* counts, std::uint64_t* offsets,
            std::uint64_t items, cudaStream_t stream);

}  // namespace gpujoin::cuda
