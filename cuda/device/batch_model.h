// How many pairs a batch holds: the performance model of [GPU-SJ, section 5.4], with its parameters
// measured on the machine at hand when a session first delivers pairs of a device.
#pragma once

#include <cstdint>

#include "cuda/device/memory.h"

namespace gpujoin::cuda {

/// R(b) = T1 + S * T2(b) + theta * n_b: besides the work itself, T1, a join pays for pinning S
/// buffers of b pairs, which takes T2(b) = b * bytes * pin_ms_per_mb each, and theta for each of
/// its n_b = pairs / b batches.
struct BatchModel {
  double pin_ms_per_mb;  ///< of T2
  double batch_ms;       ///< theta

  /// The b where that is least, sqrt(theta * pairs / (S * dT2/db)), as a power of two within the
  /// bounds that tuning.h sets.
  std::uint64_t best_batch(std::uint64_t pairs, std::uint32_t streams,
                           std::uint32_t pair_bytes) const;
};

/// Measures the current device, in a few milliseconds. Throws CudaError.
BatchModel measure_batch_model(PinnedPool& pool);

}  // namespace gpujoin::cuda
