// Rows on their way from pageable host memory to the device.
//
// The driver copies pageable memory through a pinned buffer of its own, on one core and seven times
// slower than the bus. Here threads fill one half of a pinned buffer while the other is on the bus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cuda/device/memory.h"
#include "engine/request/dataset.h"
#include "engine/worker_pool.h"

namespace gpujoin::cuda {

class Uploader {
 public:
  /// Uses up to `threads` threads, the caller's included, from the first large copy on. They call
  /// nothing of CUDA.
  Uploader(HostBudget& host_budget, std::uint32_t threads)
      : host_budget_(host_budget), threads_(threads) {}
  /// Waits until the device has read what it was given.
  ~Uploader();
  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;

  /// The threads that have copied, the caller's included.
  std::uint32_t threads() const { return pool_ ? pool_->size() : 1; }

  /// In the order of the stream. Returns when all bytes have left `from`. Throws CudaError.
  void copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream);
  /// The same for coordinates of consecutive rows, in whichever chunks they lie.
  void copy_rows(void* to, const Dataset& data, std::uint64_t first, std::uint64_t rows,
                 cudaStream_t stream);

 private:
  bool prepare(std::size_t bytes);
  bool is_worth_threads(std::size_t bytes);
  template <class Read>
  void send(void* to, std::size_t bytes, cudaStream_t stream, const Read& read);

  HostBudget& host_budget_;
  std::uint32_t threads_;
  std::optional<WorkerPool> pool_;
  PinnedBlock halves_;
  Event read_[2];  ///< by the device, of each half
  unsigned next_half_ = 0;
};

}  // namespace gpujoin::cuda
