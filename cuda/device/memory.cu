#include <algorithm>
#include <bit>
#include <vector>

#include "cuda/device/memory.h"

namespace gpujoin::cuda {
namespace {

struct KeptBlock {
  void* data;
  std::size_t bytes;
};

// A session runs its joins from one thread.
std::vector<KeptBlock>& kept_blocks() {
  static std::vector<KeptBlock> blocks;
  return blocks;
}

/// A kept block of just this size, or null.
void* take_kept(std::size_t bytes) {
  std::vector<KeptBlock>& blocks = kept_blocks();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].bytes != bytes) continue;
    void* const data = blocks[i].data;
    blocks[i] = blocks.back();
    blocks.pop_back();
    return data;
  }
  return nullptr;
}

std::size_t kept_bytes() {
  std::size_t bytes = 0;
  for (const KeptBlock& block : kept_blocks()) bytes += block.bytes;
  return bytes;
}

bool keep(const KeptBlock& block) {
  try {
    kept_blocks().push_back(block);
    return true;
  } catch (...) {  // called by destructors
    return false;
  }
}

}  // namespace

cudaMemPool_t current_pool() {
  int device = 0;
  cudaMemPool_t pool;
  check(cudaGetDevice(&device), "looking at device memory");
  check(cudaDeviceGetDefaultMemPool(&pool, device), "looking at device memory");
  return pool;
}

std::uint64_t unused_device_bytes() {
  constexpr const char* kAction = "asking for free device memory";
  std::size_t free_bytes = 0, all_bytes = 0;
  std::uint64_t reserved = 0, used = 0;
  check(cudaMemGetInfo(&free_bytes, &all_bytes), kAction);
  check(cudaMemPoolGetAttribute(current_pool(), cudaMemPoolAttrReservedMemCurrent, &reserved),
        kAction);
  check(cudaMemPoolGetAttribute(current_pool(), cudaMemPoolAttrUsedMemCurrent, &used), kAction);
  return free_bytes + (reserved - std::min(used, reserved));
}

std::uint64_t available_device_bytes(std::uint64_t limit) {
  const std::uint64_t unused = unused_device_bytes();
  const std::uint64_t usable = unused - unused / 8;
  return limit == 0 ? usable : std::min<std::uint64_t>(usable, limit);
}

PinnedBlock::PinnedBlock(MemoryBudget& budget, std::size_t bytes) {
  if (bytes == 0) return;
  // Few sizes, so that kept blocks fit; what is too large to be kept is no larger than asked for.
  bytes_ = bytes <= kMostKeptBytes ? std::bit_ceil(bytes) : bytes;
  budget.take(bytes_);
  data_ = take_kept(bytes_);
  if (data_ == nullptr) {
    const cudaError_t code = cudaHostAlloc(&data_, bytes_, cudaHostAllocPortable);
    if (code != cudaSuccess) {
      data_ = nullptr;
      budget.give_back(bytes_);
      throw CudaError{code, "pinning host memory"};
    }
  }
  budget_ = &budget;
}

PinnedBlock::~PinnedBlock() {
  if (data_ == nullptr) return;
  budget_->give_back(bytes_);
  if (kept_bytes() + bytes_ > kMostKeptBytes || !keep({data_, bytes_})) cudaFreeHost(data_);
}

}  // namespace gpujoin::cuda
