#include "cuda/device/upload.h"

#include <algorithm>
#include <cstring>

#include "cuda/device/tuning.h"

namespace gpujoin::cuda {
namespace {

constexpr const char* kAction = "copying rows to the device";

}  // namespace

Uploader::~Uploader() {
  for (const Event& read : read_) cudaEventSynchronize(read);
}

/// Pins the buffer and starts threads, as many as a copy of so many bytes is worth. False: there is
/// no room.
bool Uploader::prepare(std::size_t bytes) {
  if (pool_) return true;
  try {
    halves_ = PinnedBlock(host_budget_, 2 * kUploadBytes);
  } catch (const MemoryLimitExceeded&) {
    return false;
  }
  const auto worth = static_cast<std::uint32_t>(1 + bytes / kFewestUploadBytes);
  pool_.emplace(std::min({threads_, kMostUploadThreads, worth}));
  return true;
}

bool Uploader::is_worth_threads(std::size_t bytes) {
  return threads_ >= 2 && bytes >= kFewestUploadBytes && prepare(bytes);
}

/// Copies what read(bytes, begin, count) writes to `bytes`, some bytes a call.
template <class Read>
void Uploader::send(void* to, std::size_t bytes, cudaStream_t stream, const Read& read) {
  for (std::size_t begin = 0; begin < bytes; begin += kUploadBytes) {
    const std::size_t count = std::min(kUploadBytes, bytes - begin);
    Event& free = read_[next_half_];
    auto* const half = halves_.as<unsigned char>() + next_half_ * kUploadBytes;
    next_half_ ^= 1;
    check(cudaEventSynchronize(free), kAction);
    const std::size_t pieces = (count + kUploadPieceBytes - 1) / kUploadPieceBytes;
    pool_->parallel_for(pieces, [&](std::size_t number, unsigned) {
      const std::size_t piece = number * kUploadPieceBytes;
      read(half + piece, begin + piece, std::min(kUploadPieceBytes, count - piece));
    });
    check(cudaMemcpyAsync(static_cast<unsigned char*>(to) + begin, half, count,
                          cudaMemcpyHostToDevice, stream),
          kAction);
    free.record(stream);
  }
}

void Uploader::copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  if (!is_worth_threads(bytes)) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), kAction);
    return;
  }
  send(to, bytes, stream, [&](unsigned char* out, std::size_t begin, std::size_t count) {
    std::memcpy(out, static_cast<const unsigned char*>(from) + begin, count);
  });
}

void Uploader::copy_rows(void* to, const Dataset& data, std::uint64_t first, std::uint64_t rows,
                         cudaStream_t stream) {
  if (rows == 0) return;
  const std::size_t row_bytes = point_bytes(data), bytes = rows * row_bytes;
  if (first >> data.chunk_bits == (first + rows - 1) >> data.chunk_bits)
    return copy(to, point(data, first), bytes, stream);
  // Calls part(bytes done, address, count) for the bytes from `begin` on, chunk by chunk.
  const std::size_t chunk_bytes = row_bytes << data.chunk_bits;
  const auto visit = [&](std::size_t begin, std::size_t count, const auto& part) {
    for (std::size_t done = 0; done < count;) {
      const std::size_t place = first * row_bytes + begin + done, inside = place % chunk_bytes;
      const std::size_t here = std::min(count - done, chunk_bytes - inside);
      part(done, chunk(data, place / chunk_bytes) + inside, here);
      done += here;
    }
  };
  if (!is_worth_threads(bytes)) {
    visit(0, bytes, [&](std::size_t done, const unsigned char* from, std::size_t count) {
      copy(static_cast<unsigned char*>(to) + done, from, count, stream);
    });
    return;
  }
  send(to, bytes, stream, [&](unsigned char* out, std::size_t begin, std::size_t count) {
    visit(begin, count, [&](std::size_t done, const unsigned char* from, std::size_t here) {
      std::memcpy(out + done, from, here);
    });
  });
}

}  // namespace gpujoin::cuda
