// Helpers of kernels and of the code that launches them.
#pragma once

#include <cstdint>

#include "core/thread_number.h"
#include "cuda/device/memory.h"
#include "cuda/device/tuning.h"

namespace gpujoin::cuda {

/// The number of thread blocks of so many threads, one thread for each item.
inline unsigned blocks_for(std::uint64_t items, unsigned threads = kBlockThreads) {
  return static_cast<unsigned>((items + threads - 1) / threads);
}

/// The number of this thread in its launch. Kernels compute no such number themselves: a product of
/// theirs would have 32 bits. test/include_rules checks that.
__device__ inline std::uint64_t global_thread() {
  return thread_number(blockIdx.x, blockDim.x, threadIdx.x);
}

/// The number of threads of the launch.
__device__ inline std::uint64_t global_threads() { return thread_number(gridDim.x, blockDim.x, 0); }

/// Adds every thread's `value` to *sum, with one atomic operation for each thread block of
/// `Threads`. CUB has a sum over a block, too, which would take each file of kernels as long again
/// to compile.
template <unsigned Threads = kBlockThreads>
__device__ inline void add_over_block(unsigned long long value, unsigned long long* sum) {
  constexpr unsigned kWarp = 32;
  static_assert(Threads % kWarp == 0);
  __shared__ unsigned long long block;
  if (threadIdx.x == 0) block = 0;
  __syncthreads();
  for (unsigned offset = kWarp / 2; offset > 0; offset /= 2)
    value += __shfl_down_sync(~0u, value, offset);
  if (threadIdx.x % kWarp == 0 && value > 0) atomicAdd(&block, value);
  __syncthreads();
  if (threadIdx.x == 0 && block > 0) atomicAdd(sum, block);
  __syncthreads();
}

}  // namespace gpujoin::cuda
