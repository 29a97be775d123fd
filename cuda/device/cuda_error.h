// CUDA's error codes as exceptions inside the engine; engine.cu turns them into a Status.
#pragma once

#include <cuda_runtime.h>

namespace gpujoin::cuda {

struct CudaError {
  cudaError_t code;
  const char* action;  ///< what was being done, for the message
};

/// What a device cannot do: the caller may ask another engine.
struct Unable {
  const char* reason;
};

/// Throws CudaError unless `code` is cudaSuccess.
inline void check(cudaError_t code, const char* action) {
  if (code != cudaSuccess) throw CudaError{code, action};
}

/// To be called after a launch.
inline void check_launch(const char* action) { check(cudaGetLastError(), action); }

}  // namespace gpujoin::cuda
