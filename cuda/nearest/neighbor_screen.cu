#include "cuda/nearest/screened_kernels.h"
#include "cuda/tiles/tile_screen.cuh"

namespace gpujoin::cuda {
namespace {

constexpr unsigned kWarps = kScreenThreads / 32;
constexpr unsigned kWaiting = 128;  ///< pairs of a warp that wait for their place in the list

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

}  // namespace

void launch_neighbor_screen(const ScreenView& view, const TileList& list,
                            const CandidateList& candidates, int multiprocessors,
                            cudaStream_t stream) {
  check(cudaFuncSetAttribute(screen_kernel<WaitingLister>,
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(sizeof(ScreenStorage))),
        "setting up the screen");
  screen_kernel<<<static_cast<unsigned>(multiprocessors) * kScreenBlocksPerMultiprocessor,
                  kScreenThreads, sizeof(ScreenStorage), stream>>>(view, list,
                                                                   WaitingLister(candidates));
  check_launch("screening tiles");
}

}  // namespace gpujoin::cuda
