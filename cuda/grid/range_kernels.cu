#include "cuda/device/kernel_helpers.cuh"
#include "cuda/grid/range_dispatch.h"
#include "cuda/grid/range_kernels.h"
#include "cuda/grid/range_walk.cuh"

namespace gpujoin::cuda {
namespace {

template <Metric M, class T, std::uint32_t D, std::uint32_t G>
__global__ void __launch_bounds__(kBlockThreads)
    count_kernel(JoinView join, Stretch stretch, bool queue, std::uint32_t* counts,
                 unsigned long long* total, unsigned long long* candidates) {
  unsigned long long found_here = 0, looked_at = 0;
  for_points<G>(join, stretch, queue,
                [&](const Group<G>& group, std::uint32_t place, std::uint32_t position) {
                  const Query<T, D> query(join.left, position, join.dims);
                  std::uint32_t found = 0;
                  walk_point<T, G>(
                      join, group, position, [&](std::uint32_t candidate, bool is_candidate) {
                        if (!is_candidate) return;
                        ++looked_at;
                        found += raw_to<M, T, D>(join, query, candidate) <= join.threshold &&
                                 is_wanted(join, position, candidate);
                      });
                  found_here += found;
                  if (counts == nullptr) return;
                  for (std::uint32_t offset = G / 2; offset > 0; offset /= 2)
                    found += group.shfl_down(found, offset);
                  if (group.thread_rank() == 0) counts[place - stretch.base] = found;
                });
  add_over_block(found_here, total);
  add_over_block(looked_at, candidates);
}

template <class T, std::uint32_t G>
__global__ void __launch_bounds__(kBlockThreads)
    workload_kernel(JoinView join, Stretch stretch, std::uint32_t* candidates) {
  for_points<G>(join, stretch, false,
                [&](const Group<G>& group, std::uint32_t place, std::uint32_t position) {
                  std::uint32_t seen = 0;
                  walk_point<T, G>(join, group, position,
                                   [&](std::uint32_t, bool is_candidate) { seen += is_candidate; });
                  for (std::uint32_t offset = G / 2; offset > 0; offset /= 2)
                    seen += group.shfl_down(seen, offset);
                  if (group.thread_rank() == 0) candidates[place - stretch.base] = seen;
                });
}

template <Metric M, class T, std::uint32_t D, std::uint32_t G>
__global__ void __launch_bounds__(kBlockThreads)
    fill_kernel(JoinView join, Stretch stretch, bool queue, FillRange range) {
  for_points<G>(
      join, stretch, queue,
      [&](const Group<G>& group, std::uint32_t place, std::uint32_t position) {
        const Query<T, D> query(join.left, position, join.dims);
        std::uint64_t next = range.offsets[place - stretch.base];
        walk_point<T, G>(join, group, position, [&](std::uint32_t candidate, bool is_candidate) {
          double raw = 0;
          bool found = false;
          if (is_candidate) {
            raw = raw_to<M, T, D>(join, query, candidate);
            found = raw <= join.threshold && is_wanted(join, position, candidate);
          }
          const unsigned members = group.ballot(found);
          const std::uint64_t pair = next + __popc(members & ((1u << group.thread_rank()) - 1));
          if (found && pair >= range.first_pair && pair < range.end_pair) {
            range.neighbors[pair - range.first_pair] = candidate;
            if (range.distances != nullptr)
              range.distances[pair - range.first_pair] = distance_from_raw(M, raw);
          }
          next += __popc(members);
        });
      });
}

void start_queue(const KernelChoice& choice, const Stretch& stretch, cudaStream_t stream) {
  if (!choice.queue) return;
  check(cudaMemcpyAsync(stretch.next, &stretch.first, sizeof stretch.first, cudaMemcpyHostToDevice,
                        stream),
        "starting the work queue");
}

}  // namespace

void launch_count(const KernelChoice& choice, const JoinView& join, const Stretch& stretch,
                  std::uint32_t* counts, unsigned long long* total, unsigned long long* candidates,
                  cudaStream_t stream) {
  start_queue(choice, stretch, stream);
  dispatch(choice, [&]<Metric M, class T, std::uint32_t D, std::uint32_t G>() {
    count_kernel<M, T, D, G><<<blocks_for_stretch(choice, stretch), kBlockThreads, 0, stream>>>(
        join, stretch, choice.queue, counts, total, candidates);
  });
  check_launch("counting pairs");
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
  start_queue(choice, stretch, stream);
  dispatch(choice, [&]<Metric M, class T, std::uint32_t D, std::uint32_t G>() {
    fill_kernel<M, T, D, G><<<blocks_for_stretch(choice, stretch), kBlockThreads, 0, stream>>>(
        join, stretch, choice.queue, range);
  });
  check_launch("writing pairs");
}

}  // namespace gpujoin::cuda
