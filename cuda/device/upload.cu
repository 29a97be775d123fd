#include <algorithm>
#include <cstring>

#include "cuda/device/tuning.h"
#include "cuda/device/upload.h"

namespace gpujoin::cuda {

Uploader::~Uploader() {
  for (const Event& read : read_) cudaEventSynchronize(read);
}

/// Pins the buffer and starts the threads. False: there is no room.
bool Uploader::prepare() {
  if (pool_) return true;
  try {
    halves_ = PinnedBlock(host_budget_, 2 * kUploadBytes);
  } catch (const MemoryLimitExceeded&) {
    return false;
  }
  pool_.emplace(std::min(threads_, kMostUploadThreads));
  return true;
}

void Uploader::fill(unsigned char* half, const unsigned char* from, std::size_t bytes) {
  const std::size_t pieces = (bytes + kUploadPieceBytes - 1) / kUploadPieceBytes;
  pool_->parallel_for(pieces, [&](std::size_t piece, unsigned) {
    const std::size_t begin = piece * kUploadPieceBytes;
    std::memcpy(half + begin, from + begin, std::min(kUploadPieceBytes, bytes - begin));
  });
}

void Uploader::copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  constexpr const char* kAction = "copying rows to the device";
  if (threads_ < 2 || bytes < kFewestUploadBytes || !prepare()) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), kAction);
    return;
  }
  for (std::size_t begin = 0; begin < bytes; begin += kUploadBytes) {
    const std::size_t part = std::min(kUploadBytes, bytes - begin);
    Event& read = read_[next_half_];
    auto* const half = halves_.as<unsigned char>() + next_half_ * kUploadBytes;
    next_half_ ^= 1;
    check(cudaEventSynchronize(read), kAction);
    fill(half, static_cast<const unsigned char*>(from) + begin, part);
    check(cudaMemcpyAsync(static_cast<unsigned char*>(to) + begin, half, part,
                          cudaMemcpyHostToDevice, stream),
          kAction);
    read.record(stream);
  }
}

}  // namespace gpujoin::cuda
