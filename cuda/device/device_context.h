// What joins on one device share, and what a join may use of it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <optional>

#include "cuda/device/batch_model.h"
#include "cuda/device/memory.h"
#include "cuda/device/tuning.h"
#include "engine/engine.h"
#include "engine/joins/side_cache.h"
#include "engine/request/request.h"

namespace gpujoin::cuda {

/// A device, the memory that is kept on it and for it, and what was measured on it. It outlives its
/// joins. The device is current in all calls; they come from one thread at a time.
class DeviceContext {
 public:
  /// Throws CudaError, or Unable where the engine has no code for the device.
  explicit DeviceContext(int number);
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  int number() const { return number_; }
  const cudaDeviceProp& properties() const { return properties_; }
  /// Thread blocks that a kernel that loops over its work is launched with.
  unsigned resident_blocks() const {
    return static_cast<unsigned>(properties_.multiProcessorCount) * kBlocksPerMultiprocessor;
  }

  /// Whether another device reaches this one's memory over a bus of theirs, without the host.
  /// Throws CudaError.
  bool is_within_reach_of(const DeviceContext& reader) const;
  /// Lets it do so, if it can, in this process. Throws CudaError.
  void let_read(const DeviceContext& reader);

  PinnedPool& pinned_pool() { return pinned_pool_; }
  /// Bytes of the device's memory that nobody uses: free bytes, and bytes that the pool keeps for
  /// this process's next allocations. Throws CudaError.
  std::uint64_t unused_bytes() const { return memory_now().unused; }
  /// What a join may use of the device's memory: what is unused, but for a reserve, within the
  /// limit (0 = no limit); `more_bytes`: that are in use, and could be given back. Throws
  /// CudaError.
  std::uint64_t available_bytes(std::uint64_t limit, std::uint64_t more_bytes = 0) const;
  /// Throws CudaError.
  DeviceMemory memory() const;
  /// Gives device memory that joins have freed back, but for kKeptDeviceBytes.
  void give_back_unused() const;

  /// Measured by the first call, in a few milliseconds. Throws CudaError.
  const BatchModel& batch_model();

  /// What joins keep for the ones that follow.
  SideCache kept;

  /// What tiles/tensor_check.h has found out.
  std::optional<bool> tensor_sums_are_close;

 private:
  struct MemoryNow {
    std::uint64_t all, unused;
    std::uint64_t pool_used;  ///< what buffers of this process have
  };
  MemoryNow memory_now() const;

  int number_;
  cudaDeviceProp properties_;
  cudaMemPool_t pool_;  ///< where the device's memory comes from
  PinnedPool pinned_pool_;
  std::optional<BatchModel> batch_model_;
};

/// What a join may use: a device, memory within the limits of its request, and a stream. Joins of
/// its parts use it, too, so that they count on the same limits, and what one of them has prepared
/// is there for the next one in the order of the stream. It outlives their buffers.
struct JoinResources {
  JoinResources(DeviceContext& on, const JoinRequest& request)
      : context(on),
        host(request.resources.memory_limit, on.pinned_pool()),
        device(request.resources.device_memory_limit) {}
  /// With a share of the host's memory.
  JoinResources(DeviceContext& on, const JoinRequest& request,
                const std::shared_ptr<HostBudget>& whole)
      : context(on), host(whole), device(request.resources.device_memory_limit) {}

  /// See MemoryBudget::enforce().
  void enforce_limits(bool enforced) {
    host.enforce(enforced);
    device.enforce(enforced);
  }

  DeviceContext& context;
  HostBudget host;
  MemoryBudget device;
  Stream stream;
};

}  // namespace gpujoin::cuda
