#include "cuda/device/batch_model.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "cuda/device/tuning.h"
#include "engine/stopwatch.h"

namespace gpujoin::cuda {
namespace {

double measure_pinning() {
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  void* block = nullptr;
  const Stopwatch watch;
  check(cudaHostAlloc(&block, kBytes, cudaHostAllocDefault), "pinning host memory");
  const double ms = watch.milliseconds();
  cudaFreeHost(block);
  return ms / (kBytes >> 20);
}

/// What a batch costs when it holds next to nothing: something to run, a copy, and the wait for it.
double measure_batch(PinnedPool& pool) {
  constexpr int kRounds = 16;
  HostBudget unlimited(0, pool);
  Stream stream;
  Event done;
  const DeviceBuffer<unsigned> word(unlimited, 1, stream);
  const PinnedBlock host(unlimited, sizeof(unsigned));
  Stopwatch watch;
  for (int round = -1; round < kRounds; ++round) {
    if (round == 0) watch = Stopwatch();  // the round before warms up
    check(cudaMemsetAsync(word.data(), 0, sizeof(unsigned), stream), "measuring a batch");
    check(cudaMemcpyAsync(host.as<unsigned>(), word.data(), sizeof(unsigned),
                          cudaMemcpyDeviceToHost, stream),
          "measuring a batch");
    done.record(stream);
    while (!done.done()) {
    }
  }
  return watch.milliseconds() / kRounds;
}

}  // namespace

std::uint64_t BatchModel::best_batch(std::uint64_t pairs, std::uint32_t streams,
                                     std::uint32_t pair_bytes) const {
  const double pin_ms_per_pair = pin_ms_per_mb * pair_bytes / (1 << 20);
  const double best =
      std::sqrt(batch_ms * static_cast<double>(pairs) / (streams * pin_ms_per_pair));
  const auto clamped = static_cast<std::uint64_t>(std::clamp<double>(
      best, static_cast<double>(kFewestBatchPairs), static_cast<double>(kMostBatchPairs)));
  return std::bit_ceil(clamped);
}

BatchModel measure_batch_model(PinnedPool& pool) {
  return {measure_pinning(), measure_batch(pool)};
}

}  // namespace gpujoin::cuda
