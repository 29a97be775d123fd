// From a KernelChoice to the compiled kernel and its launch.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/range_kernels.h"
#include "cuda/tuning.h"

namespace gpujoin::cuda {

/// Calls launch.template operator()<M, T, D>() for the choice. Every combination is compiled, so
/// the less common metrics make do with the code for any number of dimensions.
template <class T, class Launch>
void dispatch_metric(const KernelChoice& choice, const Launch& launch) {
  static_assert(kMostUnrolledDimensions == 8);
  if (choice.metric == Metric::kL1) return launch.template operator()<Metric::kL1, T, 0>();
  if (choice.metric == Metric::kLInf) return launch.template operator()<Metric::kLInf, T, 0>();
  switch (choice.dims) {
    case 1:
      return launch.template operator()<Metric::kL2, T, 1>();
    case 2:
      return launch.template operator()<Metric::kL2, T, 2>();
    case 3:
      return launch.template operator()<Metric::kL2, T, 3>();
    case 4:
      return launch.template operator()<Metric::kL2, T, 4>();
    case 5:
      return launch.template operator()<Metric::kL2, T, 5>();
    case 6:
      return launch.template operator()<Metric::kL2, T, 6>();
    case 7:
      return launch.template operator()<Metric::kL2, T, 7>();
    case 8:
      return launch.template operator()<Metric::kL2, T, 8>();
    default:
      return launch.template operator()<Metric::kL2, T, 0>();
  }
}

template <class Launch>
void dispatch_dimensions(const KernelChoice& choice, const Launch& launch) {
  if (choice.scalar == ScalarType::kFloat32)
    dispatch_metric<float>(choice, launch);
  else
    dispatch_metric<double>(choice, launch);
}

/// Calls launch.template operator()<M, T, D, G>(), G the threads that share a point.
template <class Launch>
void dispatch(const KernelChoice& choice, const Launch& launch) {
  dispatch_dimensions(choice, [&]<Metric M, class T, std::uint32_t D>() {
    if (choice.threads_per_point >= 32)
      launch.template operator()<M, T, D, 32>();
    else if (choice.threads_per_point >= 8)
      launch.template operator()<M, T, D, 8>();
    else
      launch.template operator()<M, T, D, 1>();
  });
}

/// Blocks for a stretch: as many as its points need, and with a queue no more than run at once.
inline unsigned blocks_for_stretch(const KernelChoice& choice, const Stretch& stretch) {
  const std::uint64_t threads =
      std::uint64_t{stretch.end - stretch.first} * choice.threads_per_point;
  const std::uint64_t blocks = (threads + kBlockThreads - 1) / kBlockThreads;
  const std::uint64_t most = choice.queue ? choice.blocks : std::uint64_t{1} << 22;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(blocks, 1, most));
}

}  // namespace gpujoin::cuda
