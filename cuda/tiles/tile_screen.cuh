// The screen: dot products of all points of two tiles on tensor cores, in half precision with
// single-precision sums, and the pairs that pass, which a taker gets. core/tile_screen.h has the
// thresholds and the proof.
//
// A thread block of 8 warps holds 128 x 128 dot products in registers, 64 x 32 for each warp, and
// streams both tiles through shared memory, kChunkDims columns at a time, some chunks ahead
// (engine/strategy/screen_layout.h).
// Thread blocks stay resident and take every gridDim-th pair of tiles.
#pragma once

#include "cuda/device/multiply_add.cuh"
#include "cuda/device/shared_memory.h"
#include "cuda/tiles/tile_kernels.h"
#include "engine/strategy/screen_layout.h"

namespace gpujoin::cuda {

inline constexpr unsigned kScreenThreads = 256;

struct ScreenStage {
  __half left[kScreenTile][kChunkStride];
  __half right[kScreenTile][kChunkStride];
  float left_reject[kScreenTile];   ///< with a pair's first chunk
  float right_reject[kScreenTile];  ///< with its last
};

/// The stage after `stage`.
__device__ inline unsigned next_stage(unsigned stage, unsigned stages) {
  return stage + 1 == stages ? 0 : stage + 1;
}

__device__ inline void copy_async(void* shared, const void* global) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global));
}

__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;"); }

/// Waits until all but the last stages - 2 groups of copies have arrived.
__device__ inline void await_copies(unsigned stages) {
  static_assert(kMinStages == 2 && kMaxStages == 4);
  if (stages == 4)
    asm volatile("cp.async.wait_group 2;" ::: "memory");
  else if (stages == 3)
    asm volatile("cp.async.wait_group 1;" ::: "memory");
  else
    asm volatile("cp.async.wait_group 0;" ::: "memory");
}

/// Four 8 x 8 matrices of halves; lane l gives the address of row l % 8 of matrix l / 8.
__device__ inline void load_matrices(unsigned (&fragment)[4], const __half* row) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(address));
}

/// One warp's part of the work: 4 x 4 matrices of 16 x 8 sums.
class ScreenWarp {
 public:
  static constexpr unsigned kRowBlocks = 4, kColumnBlocks = 4;

  __device__ ScreenWarp()
      : lane_(threadIdx.x % 32), row_(threadIdx.x / 32 % 2 * 64), column_(threadIdx.x / 64 * 32) {}

  /// Adds 16 columns of the points; the first ones start at -tA.
  template <bool First>
  __device__ void step(const ScreenStage& stage, unsigned k) {
    step<First>(&stage.left[0][k], kChunkStride, &stage.right[0][k], stage.left_reject);
  }

  /// The same of rows so many halves apart, on the right kChunkStride.
  template <bool First>
  __device__ void step(const __half* left, unsigned left_stride, const __half* right,
                       const float* left_reject) {
    unsigned a[kRowBlocks][4], b[kColumnBlocks / 2][4];
    const unsigned matrix = lane_ / 8, r = lane_ % 8;
#pragma unroll
    for (unsigned m = 0; m < kRowBlocks; ++m)
      load_matrices(a[m],
                    left + (row_ + 16 * m + matrix % 2 * 8 + r) * left_stride + matrix / 2 * 8);
#pragma unroll
    for (unsigned n = 0; n < kColumnBlocks / 2; ++n)
      load_matrices(
          b[n], right + (column_ + 16 * n + matrix / 2 * 8 + r) * kChunkStride + matrix % 2 * 8);
#pragma unroll
    for (unsigned m = 0; m < kRowBlocks; ++m) {
      float start[4];
      if constexpr (First) {
        start[0] = start[1] = -left_reject[row_ + 16 * m + lane_ / 4];
        start[2] = start[3] = -left_reject[row_ + 16 * m + lane_ / 4 + 8];
      }
#pragma unroll
      for (unsigned n = 0; n < kColumnBlocks; ++n) {
        if constexpr (First)
          multiply_add(sums_[m][n], a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1], start);
        else
          multiply_add(sums_[m][n], a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1],
                       sums_[m][n]);
      }
    }
  }

  /// Replaces sums by their excess over the thresholds, and returns whether any lane has a sum that
  /// reaches its threshold.
  __device__ bool any_passes(const float* right_reject) {
    unsigned negative = ~0u;
#pragma unroll
    for (unsigned n = 0; n < kColumnBlocks; ++n) {
      const float2 reject =
          *reinterpret_cast<const float2*>(&right_reject[column_ + 8 * n + lane_ % 4 * 2]);
#pragma unroll
      for (unsigned m = 0; m < kRowBlocks; ++m) {
        sums_[m][n][0] -= reject.x;
        sums_[m][n][1] -= reject.y;
        sums_[m][n][2] -= reject.x;
        sums_[m][n][3] -= reject.y;
        negative &= __float_as_uint(sums_[m][n][0]) & __float_as_uint(sums_[m][n][1]);
        negative &= __float_as_uint(sums_[m][n][2]) & __float_as_uint(sums_[m][n][3]);
      }
    }
    return __any_sync(~0u, static_cast<int>(negative) >= 0);
  }

  /// Which of the lane's sums pass, and which of these pairs surely are within eps: bit 16 m + 4 n
  /// + e is element e of matrix (m, n).
  struct Passed {
    unsigned long long all = 0, sure = 0;
  };

  /// What passes, of the pairs that are looked at. After any_passes().
  __device__ Passed passed(const ScreenView& view, uint2 tile) const {
    Passed passed;
    for_sums([&](unsigned m, unsigned n, unsigned e, unsigned long long bit) {
      const std::uint32_t i = row(tile, m, e), j = column(tile, n, e);
      const float excess = sums_[m][n][e];
      if (!(excess >= 0) || !is_looked_at(view.half, i, j)) return;
      passed.all |= bit;
      if (excess >= view.left.accept[i] + view.right.accept[j]) passed.sure |= bit;
    });
    return passed;
  }

  /// The same where no pair is surely within eps: nothing is read.
  __device__ Passed passed_unsurely(const ScreenView& view, uint2 tile) const {
    Passed passed;
    for_sums([&](unsigned m, unsigned n, unsigned e, unsigned long long bit) {
      if (sums_[m][n][e] >= 0 && is_looked_at(view.half, row(tile, m, e), column(tile, n, e)))
        passed.all |= bit;
    });
    return passed;
  }

  /// The same in tiles that are full of pairs within eps: both points of each pair are read once.
  __device__ Passed many_passed(const ScreenView& view, uint2 tile) const {
    float left[2 * kRowBlocks], right[2 * kColumnBlocks];
#pragma unroll
    for (unsigned r = 0; r < 2 * kRowBlocks; ++r)
      left[r] = view.left.accept[row(tile, r / 2, r % 2 * 2)];
#pragma unroll
    for (unsigned c = 0; c < 2 * kColumnBlocks; ++c)
      right[c] = view.right.accept[column(tile, c / 2, c % 2)];
    Passed passed;
    for_sums([&](unsigned m, unsigned n, unsigned e, unsigned long long bit) {
      const float excess = sums_[m][n][e];
      if (!(excess >= 0)) return;
      passed.all |= bit;
      if (excess >= left[2 * m + e / 2] + right[2 * n + e % 2]) passed.sure |= bit;
    });
    return passed;
  }

  /// Appends pairs to the list; calls left_over(i, j) for those that it has no room for.
  template <class LeftOver>
  __device__ void append(Passed passed, uint2 tile, const CandidateList& list,
                         const LeftOver& left_over) const {
    unsigned before = static_cast<unsigned>(__popcll(passed.all));
    const unsigned mine = before;
    for (unsigned offset = 1; offset < 32; offset *= 2) {
      const unsigned other = __shfl_up_sync(~0u, before, offset);
      if (lane_ >= offset) before += other;
    }
    unsigned long long place = 0;
    if (lane_ == 31 && before > 0) place = atomicAdd(list.found, before);
    place = __shfl_sync(~0u, place, 31) + before - mine;
    for (; passed.all != 0; passed.all &= passed.all - 1, ++place) {
      const uint2 pair = first_pair(tile, passed.all);
      const bool surely = (passed.sure & passed.all & -passed.all) != 0;
      if (place < list.capacity)
        list.pairs[place] = {surely ? pair.x | CandidateList::kSurely : pair.x, pair.y};
      else
        left_over(pair.x, pair.y);
    }
  }

  /// Calls visit(m, n, e, bit) for each of the lane's sums.
  template <class Visit>
  __device__ static void for_sums(const Visit& visit) {
#pragma unroll
    for (unsigned m = 0; m < kRowBlocks; ++m) {
#pragma unroll
      for (unsigned n = 0; n < kColumnBlocks; ++n) {
#pragma unroll
        for (unsigned e = 0; e < 4; ++e) visit(m, n, e, 1ull << (m * 16 + n * 4 + e));
      }
    }
  }

  /// The points of the first of some of the lane's sums, of which there is one.
  __device__ uint2 first_pair(uint2 tile, unsigned long long sums) const {
    const unsigned at = static_cast<unsigned>(__ffsll(static_cast<long long>(sums))) - 1;
    return {row(tile, at / 16, at % 4), column(tile, at / 4 % 4, at % 4)};
  }

  /// The sums whose left point, or right point, is one that matters: matters(position).
  template <class Matters>
  __device__ unsigned long long sums_of_rows(uint2 tile, const Matters& matters) const {
    unsigned long long sums = 0;
#pragma unroll
    for (unsigned r = 0; r < 2 * kRowBlocks; ++r)
      if (matters(row(tile, r / 2, r % 2 * 2))) sums |= 0x3333ull << (r / 2 * 16 + r % 2 * 2);
    return sums;
  }
  template <class Matters>
  __device__ unsigned long long sums_of_columns(uint2 tile, const Matters& matters) const {
    unsigned long long sums = 0;
#pragma unroll
    for (unsigned c = 0; c < 2 * kColumnBlocks; ++c)
      if (matters(column(tile, c / 2, c % 2))) sums |= 0x0005000500050005ull << (c / 2 * 4 + c % 2);
    return sums;
  }

  /// The points of one of the lane's sums.
  __device__ std::uint32_t row(uint2 tile, unsigned m, unsigned e) const {
    return tile.x * kScreenTile + row_ + 16 * m + lane_ / 4 + e / 2 * 8;
  }
  __device__ std::uint32_t column(uint2 tile, unsigned n, unsigned e) const {
    return tile.y * kScreenTile + column_ + 8 * n + lane_ % 4 * 2 + e % 2;
  }

 private:
  unsigned lane_;
  unsigned row_, column_;  ///< of its part within the tiles
  float sums_[kRowBlocks][kColumnBlocks][4];
};

/// Brings chunk after chunk of the thread block's pairs of tiles to shared memory.
class ChunkLoader {
 public:
  __device__ ChunkLoader(const ScreenView& view, const TileList& list, unsigned size)
      : view_(view), list_(list), size_(size), item_(blockIdx.x) {
    if (item_ < size_) next_tile_ = list_.tiles[item_];
    next_item();
  }

  /// Starts copying the next chunk, if there is one left. Always one group of copies.
  __device__ void load(ScreenStage& stage) {
    if (item_ < size_) {
      copy_chunk(stage);
      chunk_ += kChunkDims;
      if (chunk_ >= view_.padded_dims) {
        item_ += gridDim.x;
        next_item();
      }
    }
    commit_copies();
  }

 private:
  /// Reads the pair of tiles after the next early, for that takes as long as a chunk.
  __device__ void next_item() {
    tile_ = next_tile_;
    chunk_ = 0;
    if (item_ + gridDim.x < size_) next_tile_ = list_.tiles[item_ + gridDim.x];
  }

  __device__ void copy_chunk(ScreenStage& stage) const {
    constexpr unsigned kPieceHalves = 8;  // 16 bytes
    const unsigned dims = view_.padded_dims;
    const unsigned shift = dims - chunk_ < kChunkDims ? 1 : 2;  // 2 or 4 pieces a row
    const __half* const left = view_.left.values + std::uint64_t{tile_.x} * kScreenTile * dims;
    const __half* const right = view_.right.values + std::uint64_t{tile_.y} * kScreenTile * dims;
    for (unsigned i = threadIdx.x; i < kScreenTile << shift; i += kScreenThreads) {
      const unsigned row = i >> shift, piece = (i & ((1u << shift) - 1)) * kPieceHalves;
      copy_async(&stage.left[row][piece], left + row * dims + chunk_ + piece);
      copy_async(&stage.right[row][piece], right + row * dims + chunk_ + piece);
    }
    const unsigned thread = threadIdx.x * 4;  // floats in 16 bytes
    if (chunk_ == 0 && thread < kScreenTile)
      copy_async(&stage.left_reject[thread],
                 view_.left.reject + std::uint64_t{tile_.x} * kScreenTile + thread);
    if (chunk_ + kChunkDims >= dims && thread < kScreenTile)
      copy_async(&stage.right_reject[thread],
                 view_.right.reject + std::uint64_t{tile_.y} * kScreenTile + thread);
  }

  const ScreenView& view_;
  const TileList& list_;
  unsigned size_;
  unsigned item_;
  unsigned chunk_ = 0;
  uint2 tile_{}, next_tile_{};
};

/// Lists every pair that passes.
struct PairLister {
  CandidateList candidates;

  __device__ void take(const ScreenWarp& warp, const ScreenView& view, uint2 tile) const {
    warp.append(warp.passed(view, tile), tile, candidates, [](std::uint32_t, std::uint32_t) {});
  }
  __device__ void finish() const {}
};

/// A taker is given the sums of a warp that hold one that passes: take(), on all its lanes; and at
/// last, on all threads of the block, finish(). Each thread has a copy of its own.
template <class Taker>
__global__ void __launch_bounds__(kScreenThreads, kMaxScreenBlocks)
    screen_kernel(ScreenView view, TileList list, unsigned stages, Taker taker) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ unsigned stopped[2];
  ScreenStage* const chunks = reinterpret_cast<ScreenStage*>(shared);
  const unsigned size = *list.size;
  ChunkLoader loader(view, list, size);
  ScreenWarp warp;
  if (threadIdx.x < 2) stopped[threadIdx.x] = 0;
  for (unsigned stage = 0; stage < stages - 1; ++stage) loader.load(chunks[stage]);
  unsigned read = 0, loaded = stages - 1;  // stages
  for (unsigned item = blockIdx.x, parity = 0; item < size; item += gridDim.x, parity ^= 1) {
    const float* right_reject = nullptr;
    for (unsigned chunk = 0; chunk < view.padded_dims; chunk += kChunkDims) {
      await_copies(stages);
      __syncthreads();
      // The stage that is overwritten now was read before the barrier.
      loader.load(chunks[loaded]);
      const ScreenStage& stage = chunks[read];
      if (chunk == 0)
        warp.step<true>(stage, 0);
      else
        warp.step<false>(stage, 0);
      if (chunk + 16 < view.padded_dims) warp.step<false>(stage, 16);
      right_reject = stage.right_reject;
      loaded = read;
      read = next_stage(read, stages);
    }
    if (warp.any_passes(right_reject)) taker.take(warp, view, list.tiles[item]);
    // All threads read this word after the next barrier, when it is not written again.
    if (threadIdx.x == 0) stopped[parity] = *static_cast<const volatile unsigned*>(view.stop);
    if (stopped[parity ^ 1] != 0) return;
  }
  taker.finish();
}

/// Throws CudaError; Unable where no layout fits.
template <class Taker>
void launch_screen_kernel(const ScreenLayout& layout, const ScreenView& view, const TileList& list,
                          const Taker& taker, int multiprocessors, cudaStream_t stream) {
  if (layout.stages == 0) throw Unable{"the device has too little shared memory to screen tiles"};
  const unsigned blocks = static_cast<unsigned>(multiprocessors) * layout.blocks;
  allow_shared_memory(screen_kernel<Taker>, layout.bytes, "setting up the screen");
  screen_kernel<<<blocks, kScreenThreads, layout.bytes, stream>>>(view, list, layout.stages, taker);
  check_launch("screening tiles");
}

}  // namespace gpujoin::cuda
