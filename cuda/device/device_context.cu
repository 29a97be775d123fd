#include <algorithm>

#include "cuda/device/device_context.h"

namespace gpujoin::cuda {
namespace {

__global__ void empty_kernel() {}

/// Runs a kernel, so that a lack of code shows before any work is done.
void check_code() {
  empty_kernel<<<1, 1>>>();
  const cudaError_t code = cudaGetLastError();
  if (code == cudaErrorNoKernelImageForDevice || code == cudaErrorInvalidDeviceFunction ||
      code == cudaErrorUnsupportedPtxVersion || code == cudaErrorInvalidPtx ||
      code == cudaErrorJitCompilerNotFound || code == cudaErrorJitCompilationDisabled)
    throw Unable{
        "no code for this device: the CUDA engine was built for others, or the driver "
        "is too old to compile it"};
  check(code, "running a first kernel");
}

}  // namespace

DeviceContext::DeviceContext(int number) : number_(number) {
  check_code();
  check(cudaGetDeviceProperties(&properties_, number), "looking at a device");
  check(cudaDeviceGetDefaultMemPool(&pool_, number), "looking at device memory");
  // What a join frees is kept for its next allocation, until give_back_unused().
  std::uint64_t keep = ~std::uint64_t{0};
  check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep),
        "setting up device memory");
}

bool DeviceContext::is_within_reach_of(const DeviceContext& reader) const {
  if (reader.number_ == number_) return true;
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, reader.number_, number_), "asking how devices are connected");
  return can != 0;
}

void DeviceContext::let_read(const DeviceContext& reader) {
  if (reader.number_ == number_ || !is_within_reach_of(reader)) return;
  const cudaMemAccessDesc access{{cudaMemLocationTypeDevice, reader.number_},
                                 cudaMemAccessFlagsProtReadWrite};
  check(cudaMemPoolSetAccess(pool_, &access, 1), "letting a device read another one's memory");
}

DeviceContext::MemoryNow DeviceContext::memory_now() const {
  constexpr const char* kAction = "asking for free device memory";
  MemoryNow now{};
  std::size_t free_bytes = 0, all_bytes = 0;
  std::uint64_t reserved = 0;
  check(cudaMemGetInfo(&free_bytes, &all_bytes), kAction);
  check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved), kAction);
  check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &now.pool_used), kAction);
  now.all = all_bytes;
  now.unused = free_bytes + (reserved - std::min(now.pool_used, reserved));
  return now;
}

DeviceMemory DeviceContext::memory() const {
  const MemoryNow now = memory_now();
  const std::uint64_t kept_bytes = std::min(kept.kept().device, now.pool_used);
  return {now.all - std::min(now.unused, now.all), kept_bytes, now.pool_used - kept_bytes};
}

std::uint64_t DeviceContext::available_bytes(std::uint64_t limit, std::uint64_t more_bytes) const {
  const std::uint64_t unused = unused_bytes() + more_bytes;
  const std::uint64_t usable = unused - unused / 8;
  return limit == 0 ? usable : std::min<std::uint64_t>(usable, limit);
}

void DeviceContext::give_back_unused() const {
  std::uint64_t used = 0;
  cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used);
  cudaMemPoolTrimTo(pool_, used + kKeptDeviceBytes);
}

const BatchModel& DeviceContext::batch_model() {
  if (!batch_model_) batch_model_ = measure_batch_model(pinned_pool_);
  return *batch_model_;
}

}  // namespace gpujoin::cuda
