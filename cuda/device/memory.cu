#include <algorithm>
#include <bit>

#include "cuda/device/memory.h"

namespace gpujoin::cuda {

PinnedPool::~PinnedPool() {
  for (const Block& block : blocks_) cudaFreeHost(block.data);
}

void* PinnedPool::take(std::size_t bytes) {
  const auto kept = std::find_if(blocks_.begin(), blocks_.end(),
                                 [&](const Block& block) { return block.bytes == bytes; });
  void* data = nullptr;
  if (kept == blocks_.end()) {
    check(cudaHostAlloc(&data, bytes, cudaHostAllocPortable), "pinning host memory");
    return data;
  }
  data = kept->data;
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
