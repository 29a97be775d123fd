// The kernels of the range join, launched: count the neighbours of points, and write them out.
#pragma once

#include <cstdint>

#include "core/reach.h"
#include "core/threshold.h"
#include "cuda/device/slice_source.h"
#include "cuda/grid/device_sums.h"
#include "cuda/grid/grid_index.h"
#include "engine/request/request.h"

namespace gpujoin::cuda {

/// One side's points as kernels see them.
struct PointsView {
  const void* columns;  ///< [dims and reference points][stride]
  const std::uint64_t* codes;
  const std::int64_t* ids;  ///< [stride]; null unless ids decide (counts of unordered pairs)
  std::uint32_t stride;
  std::uint32_t points;
};

/// What all launches of a join have in common. Passed to kernels by value.
struct JoinView {
  PointsView left;
  PointsView right;
  SortLayout layout;
  AccessPattern pattern;
  PairSelection pairs;
  bool self_join;
  bool smaller_id_first;  ///< count only pairs whose left id comes first
  bool short_circuit;
  std::uint32_t dims;
  double threshold;               ///< Threshold::raw
  double reach;                   ///< how far points within eps may differ in an indexed column
  const std::uint32_t* sequence;  ///< left points in the order of work; null: by position
  const unsigned* stop;           ///< nonzero on the device: leave
};

/// Which compiled kernel serves, and how its threads share the work.
struct KernelChoice {
  Metric metric;
  ScalarType scalar;
  std::uint32_t dims;
  std::uint32_t threads_per_point;  ///< 1, 8 or 32; others are rounded down
  bool queue;                       ///< groups of threads take points from a counter
  unsigned blocks;                  ///< resident thread blocks of the device
};

/// Adds to *candidates, and to *total the number of neighbours; writes each point's number to
/// counts[place - base] unless `counts` is null.
void launch_count(const KernelChoice& choice, const JoinView& join, const Stretch& stretch,
                  std::uint32_t* counts, unsigned long long* total, unsigned long long* candidates,
                  cudaStream_t stream);

/// As launch_count(), and writes the sums of each point.
void launch_sums(const KernelChoice& choice, const JoinView& join, const Stretch& stretch,
                 const DeviceSums& sums, std::uint32_t* counts, unsigned long long* total,
                 unsigned long long* candidates, cudaStream_t stream);

/// Writes candidates[place - base] = how many points the point at that place will be compared with
/// (the workload of [load-imbalance, section III-C]).
void launch_workload(const KernelChoice& choice, const JoinView& join, const Stretch& stretch,
                     std::uint32_t* candidates, cudaStream_t stream);

/// Writes neighbours, and distances where there is room for them.
void launch_fill(const KernelChoice& choice, const JoinView& join, const Stretch& stretch,
                 const FillRange& range, cudaStream_t stream);

}  // namespace gpujoin::cuda
