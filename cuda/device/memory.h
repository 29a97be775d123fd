// Memory that joins use, on a device and pinned on the host, counted against their limits; and the
// handles of streams and events.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cuda/device/cuda_error.h"
#include "engine/request/memory_budget.h"

namespace gpujoin::cuda {

/// Thrown when memory ends before the limit of its budget: other programs have the rest. Its limit
/// is what the budget had, and of a device what was free then.
struct MemoryExhausted : MemoryLimitExceeded {
  bool on_device;  ///< else pinned memory of the host
};

/// Allocates device memory in the order of the stream. Throws MemoryExhausted or CudaError.
void* allocate_on_device(const MemoryBudget& budget, std::size_t bytes, cudaStream_t stream);

class Stream {
 public:
  Stream() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
  }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  explicit Event(unsigned flags = cudaEventDisableTiming) {
    check(cudaEventCreateWithFlags(&event_, flags), "creating an event");
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }

  /// What is put into the stream from now on waits for everything before record(). Asynchronous.
  void hold(cudaStream_t stream) const {
    check(cudaStreamWaitEvent(stream, event_, 0), "waiting for another stream");
  }
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "recording an event"); }
  /// Whether everything before record() is done. Throws what went wrong on the device.
  bool done() const {
    const cudaError_t code = cudaEventQuery(event_);
    if (code == cudaErrorNotReady) return false;
    check(code, "running a kernel");
    return true;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// An uninitialised array in device memory, allocated and freed in the order of one stream. Moves
/// only.
template <class T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// Throws MemoryLimitExceeded or CudaError.
  DeviceBuffer(MemoryBudget& budget, std::size_t size, cudaStream_t stream)
      : size_(size), stream_(stream) {
    if (size == 0) return;
    budget.take(bytes());
    try {
      data_ = static_cast<T*>(allocate_on_device(budget, bytes(), stream));
    } catch (...) {
      budget.give_back(bytes());
      throw;
    }
    budget_ = &budget;
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    DeviceBuffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~DeviceBuffer() {
    if (data_ == nullptr) return;
    cudaFreeAsync(data_, stream_);
    budget_->give_back(bytes());
  }
  void swap(DeviceBuffer& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(stream_, other.stream_);
  }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }

 private:
  MemoryBudget* budget_ = nullptr;
  T* data_ = nullptr;
  std::size_t size_ = 0;
  cudaStream_t stream_ = nullptr;
};

/// Copies in the order of the stream; `host` is pinned, or the call waits.
template <class T>
void copy_to_host(T* host, const T* device, std::size_t count, cudaStream_t stream) {
  check(cudaMemcpyAsync(host, device, count * sizeof(T), cudaMemcpyDeviceToHost, stream),
        "copying to the host");
}

/// Pinned host memory that nobody uses at the moment. Pinning costs far more than a batch, so
/// blocks are kept for the next join, up to kMostKeptBytes.
class PinnedPool {
 public:
  static constexpr std::size_t kMostKeptBytes = std::size_t{512} << 20;

  PinnedPool() = default;
  ~PinnedPool();
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;

  /// Returns a block of exactly `bytes` bytes, or null if the host cannot pin them. Throws
  /// CudaError.
  void* take(std::size_t bytes);
  /// Keeps a block that was taken, or frees it.
  void give_back(void* data, std::size_t bytes);

 private:
  struct Block {
    void* data;
    std::size_t bytes;
  };
  void free_all();

  std::vector<Block> blocks_;
  std::size_t bytes_ = 0;  ///< of all blocks
};

/// The budget of a join's host memory, and where pinned memory comes from.
class HostBudget : public MemoryBudget {
 public:
  HostBudget(std::uint64_t limit_bytes, PinnedPool& pool)
      : MemoryBudget(limit_bytes), pool_(pool) {}
  /// A share of another one.
  explicit HostBudget(const std::shared_ptr<HostBudget>& whole)
      : MemoryBudget(whole), pool_(whole->pool_) {}
  PinnedPool& pool() const { return pool_; }

 private:
  PinnedPool& pool_;
};

/// Pinned host memory, uninitialised. All of the block that it got from the pool counts. Moves
/// only.
class PinnedBlock {
 public:
  PinnedBlock() = default;
  /// Throws MemoryLimitExceeded or CudaError.
  PinnedBlock(HostBudget& budget, std::size_t bytes);
  PinnedBlock(PinnedBlock&& other) noexcept { swap(other); }
  PinnedBlock& operator=(PinnedBlock&& other) noexcept {
    PinnedBlock moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~PinnedBlock();
  void swap(PinnedBlock& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  HostBudget* budget_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace gpujoin::cuda
