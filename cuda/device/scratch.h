// Memory that an algorithm of CUB works in.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "cuda/device/memory.h"

namespace gpujoin::cuda {

/// Calls call(scratch, bytes), which returns a cudaError_t, first for the bytes that it needs. What
/// it puts into the stream has the memory. `action` names it in errors. Throws CudaError or
/// MemoryLimitExceeded.
template <class Call>
void with_scratch(MemoryBudget& budget, cudaStream_t stream, const char* action, const Call& call) {
  std::size_t bytes = 0;
  check(call(nullptr, bytes), action);
  const DeviceBuffer<unsigned char> scratch(budget, bytes, stream);
  check(call(scratch.data(), bytes), action);
}

}  // namespace gpujoin::cuda
