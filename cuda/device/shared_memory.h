// Shared memory that kernels ask for when they are launched.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "cuda/device/cuda_error.h"
#include "engine/strategy/screen_layout.h"

namespace gpujoin::cuda {

/// Returns the shared memory of the current device. Throws CudaError.
SharedMemory shared_memory();

/// Lets launches of a kernel ask for so much dynamic shared memory. Throws CudaError.
template <class Kernel>
void allow_shared_memory(const Kernel& kernel, std::size_t bytes, const char* action) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)),
        action);
}

}  // namespace gpujoin::cuda
