#include <algorithm>
#include <cfloat>
#include <cub/block/block_reduce.cuh>

#include "cuda/device/kernel_helpers.cuh"
#include "cuda/device/shared_memory.h"
#include "cuda/grid/range_walk.cuh"
#include "cuda/top/top_kernels.h"

namespace gpujoin::cuda {
namespace {

/// What the sinks of the best pairs share: which pairs of a point are promising.
///
/// Scores are compared before coordinates, and the scores of a block together: where the best
/// corner of the block (see score_bounds) is not enough, no pair with one of its points is.
struct TopSink {
  static constexpr PairNeed kNeed = PairNeed::kDistance;
  static constexpr std::uint32_t kBlock = kScoreBlock;

  TopView top;
  const std::int64_t* left_ids;
  const std::int64_t* right_ids;
  unsigned long long* all_candidates;
  // The thread's.
  PairRank least{};
  std::uint32_t left = 0;
  double score = 0;
  std::uint64_t key = 0;  ///< of the pair with the last right point that was wanted

  __device__ bool scored() const { return top.left_scores != nullptr; }
  __device__ void start() { least = *top.least; }
  __device__ void begin(std::uint32_t, std::uint32_t position) {
    left = position;
    score = scored() ? top.left_scores[position] : 0;
  }
  __device__ bool wants_point() const { return !scored() || may_reach(*top.right_all); }
  __device__ bool wants_block(std::uint32_t block) const {
    return !scored() || may_reach(top.right_blocks[block]);
  }
  __device__ bool wants(std::uint32_t right) {
    key = scored() ? score_key(top.scoring.lowest_first, score_of_pair(right)) : 0;
    return !scored() || key >= least.key;
  }
  __device__ void finish(unsigned long long candidates) {
    add_over_block(candidates, all_candidates);
  }

  /// Whether a pair that is within eps has a key that is not behind the least.
  __device__ bool is_promising(double distance) {
    if (!scored()) key = score_key(top.scoring.lowest_first, distance);
    return key >= least.key;
  }
  __device__ PairRank rank_of(std::uint64_t pair_key, std::uint32_t right) const {
    return rank_of_pair(pair_key, left_ids[left], right_ids[right], top.smaller_first);
  }

 private:
  /// Whether the point may have a pair that is not behind the least among points whose scores lie
  /// in an interval.
  __device__ bool may_reach(const Interval& scores) const {
    const Interval reachable =
        reachable_scores(top.scoring, top.smaller_first, {score, score}, scores);
    return best_key(top.scoring.lowest_first, reachable) >= least.key;
  }
  /// The score of a pair of a scored join, in the order of its points.
  __device__ double score_of_pair(std::uint32_t right) const {
    const double other = top.right_scores[right];
    const bool asymmetric = top.smaller_first && top.scoring.weights[0] != top.scoring.weights[1];
    if (asymmetric && !comes_first(left_ids[left], score, right_ids[right], other))
      return pair_score(top.scoring, other, score);
    return pair_score(top.scoring, score, other);
  }
};

/// Admits every pair that is not behind the least.
struct AdmitSink : TopSink {
  __device__ void take(std::uint32_t position, std::uint32_t right, double distance) {
    if (!is_promising(distance)) return;
    if (key == least.key && comes_before(least, rank_of(key, right))) return;
    const cg::coalesced_group active = cg::coalesced_threads();
    unsigned long long first = 0;
    if (active.thread_rank() == 0) first = atomicAdd(top.admitted.count, active.size());
    const std::uint64_t entry = active.shfl(first, 0) + active.thread_rank();
    if (entry >= top.admitted.capacity) return;
    top.admitted.keys[entry] = key;
    top.admitted.pairs[entry] = std::uint64_t{position} << 32 | right;
  }
};

/// Admits the best pairs of each point: a binary heap whose first entry comes last in the result.
/// Entries of neighbouring threads are neighbours in memory [thesis, section 5.6].
struct HeapSink : TopSink {
  std::uint32_t k;
  unsigned char* scratch;  ///< null: heaps are in shared memory
  // The thread's.
  std::uint64_t* keys = nullptr;
  std::uint32_t* rights = nullptr;
  std::uint64_t stride = 0;
  std::uint32_t size = 0;

  __device__ void start() {
    extern __shared__ std::uint64_t shared[];
    TopSink::start();
    stride = scratch == nullptr ? kBlockThreads : global_threads();
    const std::uint64_t own = scratch == nullptr ? threadIdx.x : global_thread();
    std::uint64_t* const all =
        scratch == nullptr ? shared : reinterpret_cast<std::uint64_t*>(scratch);
    keys = all + own;
    rights = reinterpret_cast<std::uint32_t*>(all + k * stride) + own;
  }
  __device__ void begin(std::uint32_t index, std::uint32_t position) {
    TopSink::begin(index, position);
    size = 0;
  }
  __device__ void take(std::uint32_t, std::uint32_t right, double distance) {
    if (is_promising(distance)) offer(right);
  }
  __device__ void end(const Group<1>&) {
    const std::uint64_t first =
        size == 0 ? 0 : atomicAdd(top.admitted.count, static_cast<unsigned long long>(size));
    for (std::uint32_t i = 0; i < size; ++i) {
      if (first + i >= top.admitted.capacity) break;
      top.admitted.keys[first + i] = keys[i * stride];
      top.admitted.pairs[first + i] = std::uint64_t{left} << 32 | rights[i * stride];
    }
  }

 private:
  __device__ PairRank rank(std::uint32_t entry) const {
    return rank_of(keys[entry * stride], rights[entry * stride]);
  }
  __device__ void set(std::uint32_t entry, std::uint64_t pair_key, std::uint32_t right) {
    keys[entry * stride] = pair_key;
    rights[entry * stride] = right;
  }
  __device__ void move(std::uint32_t from, std::uint32_t to) {
    set(to, keys[from * stride], rights[from * stride]);
  }

  /// Adds a pair; where there are `k`, it takes the place of the last one.
  __device__ void offer(std::uint32_t right) {
    const PairRank offered = rank_of(key, right);
    std::uint32_t hole = 0;
    if (size < k) {
      for (hole = size++; hole > 0; hole = (hole - 1) / 2) {
        const std::uint32_t parent = (hole - 1) / 2;
        if (!comes_before(rank(parent), offered)) break;
        move(parent, hole);
      }
      return set(hole, key, right);
    }
    if (!comes_before(offered, rank(0))) return;
    for (;;) {
      std::uint32_t child = 2 * hole + 1;
      if (child >= size) break;
      PairRank last = rank(child);
      if (child + 1 < size) {
        const PairRank other = rank(child + 1);
        if (comes_before(last, other)) {
          last = other;
          ++child;
        }
      }
      if (!comes_before(offered, last)) break;
      move(child, hole);
      hole = child;
    }
    set(hole, key, right);
  }
};

/// The walk without a queue.
template <Metric M, class T, std::uint32_t D, std::uint32_t G, class Sink>
__global__ void __launch_bounds__(kBlockThreads, G == 1 ? kAdmittingBlocks : 0)
    top_kernel(JoinView join, Stretch stretch, Sink sink) {
  walk_stretch<M, T, D, G>(join, stretch, false, sink);
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
/// Shared memory that heaps take of a thread block at most, and what they leave to other data.
constexpr std::uint64_t kMaxHeapBytes = 96 << 10;
constexpr std::uint64_t kOtherSharedBytes = 1 << 10;

/// True if the current device has room for heaps of `k` pairs in shared memory. Throws CudaError.
bool fits_in_shared_memory(std::uint64_t k) {
  const std::uint64_t room = shared_memory().per_block - kOtherSharedBytes;
  return k * kHeapEntryBytes * kBlockThreads <= std::min(kMaxHeapBytes, room);
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
  const AdmitSink sink{{top, join.left.ids, join.right.ids, candidates}};
  dispatch_dimensions<1, 2, 3, 4>(choice, [&]<Metric M, class T, std::uint32_t D>() {
    if (choice.threads_per_point >= 32)
      top_kernel<M, T, D, 32><<<blocks, kBlockThreads, 0, stream>>>(join, stretch, sink);
    else
      top_kernel<M, T, D, 1><<<blocks, kBlockThreads, 0, stream>>>(join, stretch, sink);
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
  const HeapSink sink{{top, join.left.ids, join.right.ids, candidates},
                      static_cast<std::uint32_t>(k),
                      shared ? nullptr : scratch};
  const auto launch = [&]<Metric M, class T, std::uint32_t D>() {
    const auto kernel = top_kernel<M, T, D, 1, HeapSink>;
    allow_shared_memory(kernel, bytes, "making room for heaps");
    kernel<<<blocks_for(stretch.end - stretch.first), kBlockThreads, bytes, stream>>>(join, stretch,
                                                                                      sink);
  };
  dispatch_dimensions<2>(choice, launch);  // as in the thesis; the method is there for study
  check_launch("filling heaps");
}

}  // namespace gpujoin::cuda
