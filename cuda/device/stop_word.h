// The word on the device that kernels read, and leave when it is not 0.
#pragma once

#include "cuda/device/device_context.h"

namespace gpujoin::cuda {

/// It is allocated, cleared and written in a stream of its own, because the kernels' stream is
/// busy. It lies in device memory, because kernels read it with every point: in mapped host memory
/// each read would cross the bus.
class StopWord {
 public:
  /// What is put into `stream` from now on may read the word. Asynchronous. Throws CudaError or
  /// MemoryLimitExceeded.
  StopWord(JoinResources& resources, cudaStream_t stream)
      : word_(resources.device, 1, stream_), raised_(resources.host, sizeof(unsigned)) {
    check(cudaMemsetAsync(word_.data(), 0, word_.bytes(), stream_), "clearing flags");
    cleared_.record(stream_);
    check(cudaStreamWaitEvent(stream, cleared_, 0), "clearing flags");
    *raised_.as<unsigned>() = 1;
  }
  /// Kernels have ended.
  ~StopWord() { cudaStreamSynchronize(stream_); }

  const unsigned* get() const { return word_.data(); }

  /// Makes running kernels leave. Asynchronous.
  void raise() {
    cudaMemcpyAsync(word_.data(), raised_.as<unsigned>(), sizeof(unsigned), cudaMemcpyHostToDevice,
                    stream_);
  }

 private:
  Stream stream_;
  Event cleared_;
  DeviceBuffer<unsigned> word_;
  PinnedBlock raised_;
};

}  // namespace gpujoin::cuda
