#include "cuda/device/memory.h"

#include <algorithm>
#include <bit>

namespace gpujoin::cuda {

void* allocate_on_device(const MemoryBudget& budget, std::size_t bytes, cudaStream_t stream) {
  void* data = nullptr;
  const cudaError_t code = cudaMallocAsync(&data, bytes, stream);
  if (code == cudaSuccess) return data;
  if (code != cudaErrorMemoryAllocation) throw CudaError{code, "allocating device memory"};
  cudaGetLastError();  // the next launch would report it
  std::size_t free_bytes = 0, all_bytes = 0;
  if (cudaMemGetInfo(&free_bytes, &all_bytes) != cudaSuccess) free_bytes = 0;
  throw MemoryExhausted{{budget.used(), budget.used() - bytes + free_bytes}, true};
}

namespace {

/// Returns null if the host cannot pin as many bytes. Throws CudaError.
void* pin(std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t code = cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // the next launch would report it
    return nullptr;
  }
  check(code, "pinning host memory");
  return data;
}

}  // namespace

PinnedPool::~PinnedPool() { free_all(); }

void PinnedPool::free_all() {
  for (const Block& block : blocks_) cudaFreeHost(block.data);
  blocks_.clear();
  bytes_ = 0;
}

void* PinnedPool::take(std::size_t bytes) {
  const auto kept = std::find_if(blocks_.begin(), blocks_.end(),
                                 [&](const Block& block) { return block.bytes == bytes; });
  if (kept == blocks_.end()) {
    void* const pinned = pin(bytes);
    if (pinned != nullptr || blocks_.empty()) return pinned;
    free_all();
    return pin(bytes);
  }
  void* const data = kept->data;
  *kept = blocks_.back();
  blocks_.pop_back();
  bytes_ -= bytes;
  return data;
}

void PinnedPool::give_back(void* data, std::size_t bytes) {
  if (bytes_ + bytes <= kMostKeptBytes) {
    try {
      blocks_.push_back({data, bytes});
      bytes_ += bytes;
      return;
    } catch (const std::bad_alloc&) {  // destructors call this
    }
  }
  cudaFreeHost(data);
}

PinnedBlock::PinnedBlock(HostBudget& budget, std::size_t bytes) {
  if (bytes == 0) return;
  // Few sizes, so that kept blocks fit; what is too large to be kept is no larger than asked for.
  bytes_ = bytes <= PinnedPool::kMostKeptBytes ? std::bit_ceil(bytes) : bytes;
  budget.take(bytes_);
  try {
    data_ = budget.pool().take(bytes_);
    if (data_ == nullptr) throw MemoryExhausted{{budget.used(), budget.used() - bytes_}, false};
  } catch (...) {
    budget.give_back(bytes_);
    throw;
  }
  budget_ = &budget;
}

PinnedBlock::~PinnedBlock() {
  if (data_ == nullptr) return;
  budget_->give_back(bytes_);
  budget_->pool().give_back(data_, bytes_);
}

}  // namespace gpujoin::cuda
