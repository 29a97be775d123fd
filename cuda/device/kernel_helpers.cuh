// Helpers of kernels and of the code that launches them.
#pragma once

#include <cstdint>
#include <cub/cub.cuh>

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
/// `Threads`.
template <unsigned Threads = kBlockThreads>
__device__ inline void add_over_block(unsigned long long value, unsigned long long* sum) {
  using Reduce = cub::BlockReduce<unsigned long long, Threads>;
  __shared__ typename Reduce::TempStorage storage;
  const unsigned long long block = Reduce(storage).Sum(value);
  if (threadIdx.x == 0 && block > 0) atomicAdd(sum, block);
  __syncthreads();
}

/// offsets[i] = counts[0] + .. + counts[i - 1], of `items`. Asynchronous. Throws CudaError or
/// MemoryLimitExceeded.
inline void add_up(MemoryBudget& budget, const std::uint32_t* counts, std::uint64_t* offsets,
                   std::uint64_t items, cudaStream_t stream) {
  std::size_t bytes = 0;
  const auto scan = [&](void* scratch) {
    check(cub::DeviceScan::ExclusiveScan(scratch, bytes, counts, offsets, ::cuda::std::plus<>{},
                                         std::uint64_t{0}, items, stream),
          "adding up counts");
  };
  scan(nullptr);
  DeviceBuffer<unsigned char> scratch(budget, bytes, stream);
  scan(scratch.data());
}

}  // namespace gpujoin::cuda
