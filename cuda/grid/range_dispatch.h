// From a KernelChoice to the compiled kernel and its launch.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/device/tuning.h"
#include "cuda/grid/range_kernels.h"

namespace gpujoin::cuda {

template <class T, std::uint32_t... Unrolled, class Launch>
void dispatch_metric(const KernelChoice& choice, const Launch& launch) {
  if (choice.metric == Metric::kL1) return launch.template operator()<Metric::kL1, T, 0>();
  if (choice.metric == Metric::kLInf) return launch.template operator()<Metric::kLInf, T, 0>();
  const auto launch_if = [&]<std::uint32_t D>() {
    if (choice.dims == D) launch.template operator()<Metric::kL2, T, D>();
    return choice.dims == D;
  };
  if (!(launch_if.template operator()<Unrolled>() || ...))
    launch.template operator()<Metric::kL2, T, 0>();
}

/// Calls launch.template operator()<M, T, D>() for the choice. Every combination is compiled, so
/// numbers of dimensions that are not among `Unrolled`, and the less common metrics, make do with
/// the code for any number, D = 0.
template <std::uint32_t... Unrolled, class Launch>
void dispatch_dimensions(const KernelChoice& choice, const Launch& launch) {
  if (choice.scalar == ScalarType::kFloat32)
    dispatch_metric<float, Unrolled...>(choice, launch);
  else
    dispatch_metric<double, Unrolled...>(choice, launch);
}

/// Calls launch.template operator()<M, T, D, G>(), G the threads that share a point.
template <class Launch>
void dispatch(const KernelChoice& choice, const Launch& launch) {
  static_assert(kMostUnrolledDimensions == 8);
  dispatch_dimensions<1, 2, 3, 4, 5, 6, 7, 8>(choice, [&]<Metric M, class T, std::uint32_t D>() {
    if (choice.threads_per_point >= 32)
      launch.template operator()<M, T, D, 32>();
    else if (choice.threads_per_point >= 8)
      launch.template operator()<M, T, D, 8>();
    else
      launch.template operator()<M, T, D, 1>();
  });
}

/// Thread blocks for a stretch: as many as its points need, and with a queue no more than run at
/// once.
inline unsigned blocks_for_stretch(const KernelChoice& choice, const Stretch& stretch) {
  const std::uint64_t threads =
      std::uint64_t{stretch.end - stretch.first} * choice.threads_per_point;
  const std::uint64_t blocks = (threads + kBlockThreads - 1) / kBlockThreads;
  const std::uint64_t most = choice.queue ? choice.blocks : std::uint64_t{1} << 22;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(blocks, 1, most));
}

}  // namespace gpujoin::cuda
