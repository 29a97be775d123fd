#include "cuda/device/kernel_helpers.cuh"
#include "cuda/grid/range_kernels.h"
#include "cuda/grid/range_walk.cuh"

namespace gpujoin::cuda {
namespace {

/// Sum of a value over the threads of a group, on the first of them.
template <std::uint32_t G>
__device__ std::uint32_t sum_of_group(const Group<G>& group, std::uint32_t value) {
  for (std::uint32_t offset = G / 2; offset > 0; offset /= 2)
    value += group.shfl_down(value, offset);
  return value;
}

/// Pairs of each point, unless `counts` is null, and of all points.
struct CountSink {
  static constexpr PairNeed kNeed = PairNeed::kNumber;

  std::uint32_t* counts;
  unsigned long long* total;
  unsigned long long* all_candidates;
  unsigned long long found = 0;  // by the thread

  template <std::uint32_t G>
  __device__ void take_number(const Group<G>& group, std::uint32_t index, std::uint32_t entries) {
    found += entries;
    if (counts == nullptr) return;
    const std::uint32_t sum = sum_of_group(group, entries);
    if (group.thread_rank() == 0) counts[index] = sum;
  }
  __device__ void finish(unsigned long long candidates) {
    add_over_block(found, total);
    add_over_block(candidates, all_candidates);
  }
};

/// Writes pairs at the places that counting found for them.
struct FillSink {
  static constexpr PairNeed kNeed = PairNeed::kDistance;

  FillRange range;
  std::uint64_t next = 0;  // of the group

  __device__ void begin(std::uint32_t index, std::uint32_t) { next = range.offsets[index]; }
  template <std::uint32_t G>
  __device__ void take_together(const Group<G>& group, bool found, std::uint32_t right,
                                double distance) {
    const unsigned members = group.ballot(found);
    const std::uint64_t pair = next + __popc(members & ((1u << group.thread_rank()) - 1));
    if (found && pair >= range.first_pair && pair < range.end_pair) {
      range.neighbors[pair - range.first_pair] = right;
      if (range.distances != nullptr) range.distances[pair - range.first_pair] = distance;
    }
    next += __popc(members);
  }
};

template <class T, std::uint32_t G>
__global__ void __launch_bounds__(kBlockThreads)
    workload_kernel(JoinView join, Stretch stretch, std::uint32_t* candidates) {
  for_points<G>(join, stretch, false,
                [&](const Group<G>& group, std::uint32_t place, std::uint32_t position) {
                  std::uint32_t seen = 0;
                  for_windows<T, G>(join, group, position, [&](const PositionRange& window) {
                    for_candidates<G>(group, window, [&](std::uint32_t, bool is_candidate) {
                      seen += is_candidate;
                    });
                  });
                  seen = sum_of_group(group, seen);
                  if (group.thread_rank() == 0) candidates[place - stretch.base] = seen;
                });
}

}  // namespace

void launch_count(const KernelChoice& choice, const JoinView& join, const Stretch& stretch,
                  std::uint32_t* counts, unsigned long long* total, unsigned long long* candidates,
                  cudaStream_t stream) {
  launch_walk(choice, join, stretch, CountSink{counts, total, candidates}, "counting pairs",
              stream);
}

void launch_workload(const KernelChoice& choice, const JoinView& join, const Stretch& stretch,
                     std::uint32_t* candidates, cudaStream_t stream) {
  const unsigned blocks = blocks_for_stretch(choice, stretch);
  if (choice.scalar == ScalarType::kFloat32)
    workload_kernel<float, 8><<<blocks, kBlockThreads, 0, stream>>>(join, stretch, candidates);
  else
    workload_kernel<double, 8><<<blocks, kBlockThreads, 0, stream>>>(join, stretch, candidates);
  check_launch("measuring the work of points");
}

void launch_fill(const KernelChoice& choice, const JoinView& join, const Stretch& stretch,
                 const FillRange& range, cudaStream_t stream) {
  launch_walk(choice, join, stretch, FillSink{range}, "writing pairs", stream);
}

}  // namespace gpujoin::cuda
