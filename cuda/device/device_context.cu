#include <algorithm>

#include "cuda/device/device_context.h"

namespace gpujoin::cuda {

DeviceContext::DeviceContext(int number) : number_(number) {
  check(cudaGetDeviceProperties(&properties_, number), "looking at a device");
  check(cudaDeviceGetDefaultMemPool(&pool_, number), "looking at device memory");
  // What a join frees is kept for its next allocation, until give_back_unused().
  std::uint64_t keep = ~std::uint64_t{0};
  check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep),
        "setting up device memory");
}

std::uint64_t DeviceContext::unused_bytes() const {
  constexpr const char* kAction = "asking for free device memory";
  std::size_t free_bytes = 0, all_bytes = 0;
  std::uint64_t reserved = 0, used = 0;
  check(cudaMemGetInfo(&free_bytes, &all_bytes), kAction);
  check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved), kAction);
  check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used), kAction);
  return free_bytes + (reserved - std::min(used, reserved));
}

std::uint64_t DeviceContext::available_bytes(std::uint64_t limit, std::uint64_t more_bytes) const {
  const std::uint64_t unused = unused_bytes() + more_bytes;
  const std::uint64_t usable = unused - unused / 8;
  return limit == 0 ? usable : std::min<std::uint64_t>(usable, limit);
}

void DeviceContext::give_back_unused() const { cudaMemPoolTrimTo(pool_, kKeptDeviceBytes); }

const BatchModel& DeviceContext::batch_model() {
  if (!batch_model_) batch_model_ = measure_batch_model(pinned_pool_);
  return *batch_model_;
}

}  // namespace gpujoin::cuda
