#include <algorithm>

#include "cuda/nearest/screened_kernels.h"
#include "cuda/tiles/tile_screen.cuh"

namespace gpujoin::cuda {
namespace {

constexpr unsigned kWarps = kScreenThreads / 32;
constexpr unsigned kWaiting = 128;  ///< pairs of a warp that wait for their place in the list
static_assert(kWarps * kWaiting * sizeof(uint2) == kCollectedBytes);

/// Lists every pair that passes, a warp some hundred at a time: an addition in device memory takes
/// as long as a part of a pair of tiles.
class WaitingLister {
 public:
  explicit WaitingLister(const CandidateList& candidates) : candidates_(candidates) {}

  __device__ void take(const ScreenWarp& warp, const ScreenView& view, uint2 tile) {
    unsigned long long passed = warp.passed_unsurely(view, tile).all;
    // Lanes with many pairs take several turns.
    while (__any_sync(~0u, passed != 0)) {
      const unsigned lanes = __ballot_sync(~0u, passed != 0);
      if (waiting_ + 32 > kWaiting) flush();
      if (passed != 0) {
        const unsigned at = static_cast<unsigned>(__ffsll(static_cast<long long>(passed))) - 1;
        passed &= passed - 1;
        pairs()[waiting_ + __popc(lanes & ((1u << lane()) - 1))] = {
            warp.row(tile, at / 16, at % 4), warp.column(tile, at / 4 % 4, at % 4)};
      }
      waiting_ += __popc(lanes);
    }
  }

  __device__ void finish() { flush(); }

 private:
  __device__ static unsigned lane() { return threadIdx.x % 32; }

  /// Those of this thread's warp.
  __device__ static uint2* pairs() {
    __shared__ uint2 waiting[kWarps][kWaiting];
    return waiting[threadIdx.x / 32];
  }

  __device__ void flush() {
    if (waiting_ == 0) return;
    __syncwarp();
    unsigned long long place = 0;
    if (lane() == 0)
      place = atomicAdd(candidates_.found, static_cast<unsigned long long>(waiting_));
    place = __shfl_sync(~0u, place, 0);
    for (unsigned i = lane(); i < waiting_ && place + i < candidates_.capacity; i += 32)
      candidates_.pairs[place + i] = pairs()[i];
    __syncwarp();
    waiting_ = 0;
  }

  CandidateList candidates_;
  unsigned waiting_ = 0;  ///< the same on all lanes
};

/// Right tiles that a left tile in shared memory meets, where there are enough pairs for all.
constexpr unsigned kMostGroup = 32;

/// A chunk of a right tile.
struct RightStage {
  __half values[kScreenTile][kChunkStride];
  float reject[kScreenTile];  ///< with the last chunk
};

/// Rows of a left tile in shared memory lie so many halves apart, free of bank conflicts.
__device__ unsigned resident_stride(unsigned dims) { return dims + kResidentPadding; }

/// As screen_kernel, of all pairs of a rectangle: a thread block keeps a left tile and meets a
/// group of right tiles, which thread blocks at the same time have in common. It reads half as
/// much.
template <class Taker>
__global__ void __launch_bounds__(kScreenThreads, kMaxScreenBlocks)
    resident_kernel(ScreenView view, TileRectangle rectangle, unsigned group, unsigned stages,
                    Taker taker) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ unsigned stopped;
  constexpr unsigned kPieceHalves = 8;  // 16 bytes
  const unsigned dims = view.padded_dims, stride = resident_stride(dims),
                 pieces = dims / kPieceHalves;
  __half* const left = reinterpret_cast<__half*>(shared);
  float* const left_reject = reinterpret_cast<float*>(left + kScreenTile * stride);
  RightStage* const chunks = reinterpret_cast<RightStage*>(left_reject + kScreenTile);
  const unsigned rows = rectangle.end_row - rectangle.first_row;
  const unsigned columns = rectangle.end_column - rectangle.first_column;
  const unsigned items = rows * ((columns + group - 1) / group);
  const unsigned thread = threadIdx.x * 4;  // floats in 16 bytes
  ScreenWarp warp;
  unsigned there = ~0u;  // the left tile in shared memory
  for (unsigned item = blockIdx.x; item < items; item += gridDim.x) {
    const unsigned row = rectangle.first_row + item % rows;
    const unsigned begin = rectangle.first_column + item / rows * group;
    const unsigned end = min(rectangle.end_column, begin + group);
    __syncthreads();  // what is overwritten now was read
    if (threadIdx.x == 0) stopped = *static_cast<const volatile unsigned*>(view.stop);
    if (row != there) {
      const __half* const from = view.left.values + std::uint64_t{row} * kScreenTile * dims;
      for (unsigned i = threadIdx.x; i < kScreenTile * pieces; i += kScreenThreads)
        copy_async(left + i / pieces * stride + i % pieces * kPieceHalves, from + i * kPieceHalves);
      if (thread < kScreenTile)
        copy_async(left_reject + thread,
                   view.left.reject + std::uint64_t{row} * kScreenTile + thread);
      there = row;
    }
    unsigned next_tile = begin, next_chunk = 0;
    // Starts copying the next chunk, if there is one left. Always one group of copies.
    const auto load = [&](RightStage& stage) {
      if (next_tile < end) {
        const unsigned shift = dims - next_chunk < kChunkDims ? 1 : 2;  // 2 or 4 pieces a row
        const __half* const right =
            view.right.values + std::uint64_t{next_tile} * kScreenTile * dims + next_chunk;
        for (unsigned i = threadIdx.x; i < kScreenTile << shift; i += kScreenThreads) {
          const unsigned at = i >> shift, piece = (i & ((1u << shift) - 1)) * kPieceHalves;
          copy_async(&stage.values[at][piece], right + at * dims + piece);
        }
        if (next_chunk + kChunkDims >= dims && thread < kScreenTile)
          copy_async(&stage.reject[thread],
                     view.right.reject + std::uint64_t{next_tile} * kScreenTile + thread);
        next_chunk += kChunkDims;
        if (next_chunk >= dims) {
          next_chunk = 0;
          ++next_tile;
        }
      }
      commit_copies();
    };
    for (unsigned stage = 0; stage < stages - 1; ++stage) load(chunks[stage]);
    unsigned read = 0, loaded = stages - 1;  // stages
    for (unsigned tile = begin; tile < end; ++tile) {
      const float* right_reject = nullptr;
      for (unsigned chunk = 0; chunk < dims; chunk += kChunkDims) {
        await_copies(stages);
        __syncthreads();
        if (stopped != 0) return;
        // The stage that is overwritten now was read before the barrier.
        load(chunks[loaded]);
        const RightStage& stage = chunks[read];
        if (chunk == 0)
          warp.step<true>(left, stride, &stage.values[0][0], left_reject);
        else
          warp.step<false>(left + chunk, stride, &stage.values[0][0], left_reject);
        if (chunk + 16 < dims)
          warp.step<false>(left + chunk + 16, stride, &stage.values[0][16], left_reject);
        right_reject = stage.reject;
        loaded = read;
        read = next_stage(read, stages);
      }
      if (warp.any_passes(right_reject)) taker.take(warp, view, uint2{row, tile});
    }
  }
  taker.finish();
}

}  // namespace

void launch_neighbor_screen(const ScreenView& view, const TileRectangle& rectangle,
                            const TileList& list, const CandidateList& candidates,
                            int multiprocessors, cudaStream_t stream) {
  const WaitingLister lister(candidates);
  const ScreenLayout layout = choose_neighbor_screen(shared_memory(), view.padded_dims);
  if (layout.keeps_left) {
    const unsigned blocks = static_cast<unsigned>(multiprocessors) * layout.blocks;
    constexpr std::uint64_t kTurns = 8;  // of each thread block at least, where there are so many
    const auto group = static_cast<unsigned>(
        std::clamp<std::uint64_t>(rectangle.size() / (kTurns * blocks), 1, kMostGroup));
    allow_shared_memory(resident_kernel<WaitingLister>, layout.bytes, "setting up the screen");
    resident_kernel<<<blocks, kScreenThreads, layout.bytes, stream>>>(view, rectangle, group,
                                                                      layout.stages, lister);
    check_launch("screening tiles");
  } else {
    launch_list_all(rectangle, list, stream);
    launch_screen_kernel(layout, view, list, lister, multiprocessors, stream);
  }
}

}  // namespace gpujoin::cuda
