#include <cfloat>

#include "cuda/device/kernel_helpers.cuh"
#include "cuda/grid/range_dispatch.h"
#include "cuda/grid/range_walk.cuh"
#include "cuda/top/top_kernels.h"

namespace gpujoin::cuda {
namespace {

/// The score of a pair of a scored join, in the order of its points.
__device__ double score_of_pair(const JoinView& join, const TopView& top, std::uint32_t position,
                                std::uint32_t candidate) {
  const double left = top.left_scores[position], right = top.right_scores[candidate];
  const bool asymmetric = top.smaller_first && top.scoring.weights[0] != top.scoring.weights[1];
  if (asymmetric && !comes_first(join.left.ids[position], left, join.right.ids[candidate], right))
    return pair_score(top.scoring, right, left);
  return pair_score(top.scoring, left, right);
}

/// Whether a point with this score may have a pair with a key of `least` or more among points whose
/// scores lie in an interval.
__device__ bool may_reach(const TopView& top, double score, const Interval& scores,
                          std::uint64_t least) {
  const Interval reachable =
      reachable_scores(top.scoring, top.smaller_first, {score, score}, scores);
  return best_key(top.scoring.lowest_first, reachable) >= least;
}

__device__ PairRank rank_of(const JoinView& join, const TopView& top, std::uint64_t key,
                            std::uint32_t position, std::uint32_t candidate) {
  return rank_of_pair(key, join.left.ids[position], join.right.ids[candidate], top.smaller_first);
}

/// Calls visit(candidate, key) on single threads for the pairs of a point that are within eps and
/// whose key is `least` or more. Returns how many candidates this thread compared.
///
/// Scores are compared before coordinates, and the scores of a block together: where the best
/// corner of the block (see score_bounds) is not enough, no pair with one of its points is.
template <Metric M, class T, std::uint32_t D, std::uint32_t G, class Visit>
__device__ unsigned for_promising(const JoinView& join, const TopView& top, const Group<G>& group,
                                  std::uint32_t position, std::uint64_t least, const Visit& visit) {
  const bool scored = top.left_scores != nullptr;
  const bool lowest = top.scoring.lowest_first;
  const double score = scored ? top.left_scores[position] : 0;
  unsigned looked_at = 0;
  if (scored && !may_reach(top, score, *top.right_all, least)) return 0;
  const Query<T, D> query(join.left, position, join.dims);
  for_windows<T, G>(join, group, position, [&](const PositionRange& window) {
    std::uint32_t end;
    for (std::uint32_t begin = window.begin; begin < window.end; begin = end) {
      const std::uint32_t block = begin / kScoreBlock;
      end = min(window.end, (block + 1) * kScoreBlock);
      if (scored && !may_reach(top, score, top.right_blocks[block], least)) continue;
      for (std::uint32_t candidate = begin + group.thread_rank(); candidate < end; candidate += G) {
        std::uint64_t key = 0;
        if (scored) {
          key = score_key(lowest, score_of_pair(join, top, position, candidate));
          if (key < least) continue;
        }
        ++looked_at;
        const double raw = raw_to<M, T, D>(join, query, candidate);
        if (!(raw <= join.threshold)) continue;
        if (!scored) key = score_key(lowest, distance_from_raw(M, raw));
        if (key >= least) visit(candidate, key);
      }
    }
  });
  return looked_at;
}

template <Metric M, class T, std::uint32_t D, std::uint32_t G>
__global__ void __launch_bounds__(kBlockThreads)
    admit_kernel(JoinView join, TopView top, Stretch stretch, unsigned long long* candidates) {
  const PairRank least = *top.least;
  unsigned long long looked_at = 0;
  for_points<G>(
      join, stretch, false, [&](const Group<G>& group, std::uint32_t, std::uint32_t position) {
        looked_at += for_promising<M, T, D, G>(
            join, top, group, position, least.key, [&](std::uint32_t candidate, std::uint64_t key) {
              if (key == least.key &&
                  comes_before(least, rank_of(join, top, key, position, candidate)))
                return;
              const cg::coalesced_group active = cg::coalesced_threads();
              unsigned long long first = 0;
              if (active.thread_rank() == 0) first = atomicAdd(top.admitted.count, active.size());
              const std::uint64_t entry = active.shfl(first, 0) + active.thread_rank();
              if (entry >= top.admitted.capacity) return;
              top.admitted.keys[entry] = key;
              top.admitted.pairs[entry] = std::uint64_t{position} << 32 | candidate;
            });
      });
  add_over_block(looked_at, candidates);
}

/// The best pairs of one point: a binary heap whose first entry comes last in the result. Entries
/// of neighbouring threads are neighbours in memory [thesis, section 5.6].
struct LocalHeap {
  std::uint64_t* keys;
  std::uint32_t* candidates;
  std::uint64_t stride;
  std::uint32_t size;

  __device__ PairRank rank(const JoinView& join, const TopView& top, std::uint32_t position,
                           std::uint32_t entry) const {
    return rank_of(join, top, keys[entry * stride], position, candidates[entry * stride]);
  }
  __device__ void set(std::uint32_t entry, std::uint64_t key, std::uint32_t candidate) {
    keys[entry * stride] = key;
    candidates[entry * stride] = candidate;
  }
  __device__ void move(std::uint32_t from, std::uint32_t to) {
    set(to, keys[from * stride], candidates[from * stride]);
  }

  /// Adds a pair; where there are `k`, it takes the place of the last one.
  __device__ void offer(const JoinView& join, const TopView& top, std::uint32_t k,
                        std::uint32_t position, std::uint32_t candidate, std::uint64_t key) {
    const PairRank offered = rank_of(join, top, key, position, candidate);
    std::uint32_t hole = 0;
    if (size < k) {
      for (hole = size++; hole > 0; hole = (hole - 1) / 2) {
        const std::uint32_t parent = (hole - 1) / 2;
        if (!comes_before(rank(join, top, position, parent), offered)) break;
        move(parent, hole);
      }
      return set(hole, key, candidate);
    }
    if (!comes_before(offered, rank(join, top, position, 0))) return;
    for (;;) {
      std::uint32_t child = 2 * hole + 1;
      if (child >= size) break;
      PairRank last = rank(join, top, position, child);
      if (child + 1 < size) {
        const PairRank other = rank(join, top, position, child + 1);
        if (comes_before(last, other)) {
          last = other;
          ++child;
        }
      }
      if (!comes_before(offered, last)) break;
      move(child, hole);
      hole = child;
    }
    set(hole, key, candidate);
  }
};

template <Metric M, class T, std::uint32_t D>
__global__ void __launch_bounds__(kBlockThreads)
    heap_kernel(JoinView join, TopView top, Stretch stretch, std::uint32_t k,
                unsigned char* scratch, unsigned long long* candidates) {
  extern __shared__ std::uint64_t shared[];
  const std::uint64_t stride = scratch == nullptr ? kBlockThreads : global_threads();
  const std::uint64_t own = scratch == nullptr ? threadIdx.x : global_thread();
  std::uint64_t* const keys =
      scratch == nullptr ? shared : reinterpret_cast<std::uint64_t*>(scratch);
  std::uint32_t* const rights = reinterpret_cast<std::uint32_t*>(keys + k * stride);
  const std::uint64_t least = top.least->key;
  unsigned long long looked_at = 0;
  for_points<1>(
      join, stretch, false, [&](const Group<1>& group, std::uint32_t, std::uint32_t position) {
        LocalHeap heap{keys + own, rights + own, stride, 0};
        looked_at += for_promising<M, T, D, 1>(join, top, group, position, least,
                                               [&](std::uint32_t candidate, std::uint64_t key) {
                                                 heap.offer(join, top, k, position, candidate, key);
                                               });
        const std::uint64_t first =
            heap.size == 0
                ? 0
                : atomicAdd(top.admitted.count, static_cast<unsigned long long>(heap.size));
        for (std::uint32_t i = 0; i < heap.size; ++i) {
          if (first + i >= top.admitted.capacity) break;
          top.admitted.keys[first + i] = heap.keys[i * stride];
          top.admitted.pairs[first + i] =
              std::uint64_t{position} << 32 | heap.candidates[i * stride];
        }
      });
  add_over_block(looked_at, candidates);
}

/// One warp for each block of scores.
__global__ void score_blocks_kernel(const double* scores, std::uint32_t points, Interval* blocks) {
  static_assert(kScoreBlock == 32);
  const std::uint64_t point = global_thread();
  double low = point < points ? scores[point] : DBL_MAX, high = point < points ? low : -DBL_MAX;
  for (unsigned offset = 16; offset > 0; offset /= 2) {
    low = fmin(low, __shfl_xor_sync(~0u, low, offset));
    high = fmax(high, __shfl_xor_sync(~0u, high, offset));
  }
  if (threadIdx.x % kScoreBlock == 0 && point < points) blocks[point / kScoreBlock] = {low, high};
}

/// One thread block.
__global__ void all_scores_kernel(const Interval* blocks, std::uint32_t count, Interval* all) {
  double low = DBL_MAX, high = -DBL_MAX;
  for (std::uint32_t block = threadIdx.x; block < count; block += kBlockThreads) {
    low = fmin(low, blocks[block].low);
    high = fmax(high, blocks[block].high);
  }
  using Reduce = cub::BlockReduce<double, kBlockThreads>;
  __shared__ typename Reduce::TempStorage storage;
  const double lowest = Reduce(storage).Reduce(low, ::cuda::minimum<>{});
  __syncthreads();
  const double highest = Reduce(storage).Reduce(high, ::cuda::maximum<>{});
  if (threadIdx.x == 0) *all = {lowest, highest};
}

/// Bytes of a pair in a heap.
constexpr std::uint64_t kHeapEntryBytes = sizeof(std::uint64_t) + sizeof(std::uint32_t);
/// Shared memory that every supported device lends to a thread block.
constexpr std::uint64_t kMostHeapBytes = 96 << 10;

bool fits_in_shared_memory(std::uint64_t k) {
  return k * kHeapEntryBytes * kBlockThreads <= kMostHeapBytes;
}

}  // namespace

void find_score_blocks(const double* scores, std::uint32_t points, Interval* blocks, Interval* all,
                       cudaStream_t stream) {
  const std::uint32_t count = (points + kScoreBlock - 1) / kScoreBlock;
  if (points > 0)
    score_blocks_kernel<<<blocks_for(points), kBlockThreads, 0, stream>>>(scores, points, blocks);
  all_scores_kernel<<<1, kBlockThreads, 0, stream>>>(blocks, count, all);
  check_launch("looking at scores");
}

void launch_admit(const KernelChoice& choice, const JoinView& join, const TopView& top,
                  const Stretch& stretch, unsigned long long* candidates, cudaStream_t stream) {
  const unsigned blocks = blocks_for_stretch(choice, stretch);
  dispatch_dimensions<1, 2, 3, 4>(choice, [&]<Metric M, class T, std::uint32_t D>() {
    if (choice.threads_per_point >= 32)
      admit_kernel<M, T, D, 32>
          <<<blocks, kBlockThreads, 0, stream>>>(join, top, stretch, candidates);
    else
      admit_kernel<M, T, D, 1>
          <<<blocks, kBlockThreads, 0, stream>>>(join, top, stretch, candidates);
  });
  check_launch("looking for the best pairs");
}

std::uint64_t heap_scratch_bytes(std::uint64_t k, std::uint64_t points) {
  if (fits_in_shared_memory(k)) return 0;
  return k * kHeapEntryBytes * blocks_for(points) * kBlockThreads;
}

void launch_heaps(const KernelChoice& choice, const JoinView& join, const TopView& top,
                  const Stretch& stretch, std::uint64_t k, unsigned char* scratch,
                  unsigned long long* candidates, cudaStream_t stream) {
  const bool shared = fits_in_shared_memory(k);
  const std::uint64_t bytes = shared ? k * kHeapEntryBytes * kBlockThreads : 0;
  const auto launch = [&]<Metric M, class T, std::uint32_t D>() {
    check(cudaFuncSetAttribute(heap_kernel<M, T, D>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(bytes)),
          "making room for heaps");
    heap_kernel<M, T, D><<<blocks_for(stretch.end - stretch.first), kBlockThreads, bytes, stream>>>(
        join, top, stretch, static_cast<std::uint32_t>(k), shared ? nullptr : scratch, candidates);
  };
  dispatch_dimensions<2>(choice, launch);  // as in the thesis; the method is there for study
  check_launch("filling heaps");
}

}  // namespace gpujoin::cuda
