// Counting without a list of pairs: what the screen decides is counted where it is found, in
// registers, and only what it leaves open is listed, or decided at once where the list is full. So
// one launch counts any number of pairs.
#pragma once

#include "core/pair_sink.h"
#include "cuda/device/kernel_helpers.cuh"
#include "cuda/tiles/tile_decision.cuh"
#include "cuda/tiles/tile_kernels.h"
#include "cuda/tiles/tile_screen.cuh"

namespace gpujoin::cuda {

/// Counts pairs, and nothing else, as the walk itself does.
struct TotalSink {
  static constexpr PairNeed kNeed = PairNeed::kNumber;
};

/// Counts the pairs of points.
struct CountSink {
  static constexpr PairNeed kNeed = PairNeed::kPosition;
  TileCounts to;

  __device__ void take(std::uint32_t i, std::uint32_t j, double) const {
    using Ends = TileCounts::Ends;
    const bool right_end = to.ends == Ends::kSmallerEnd && !counts_at_left(to.ids, i, j);
    atomicAdd(&to.counts[right_end ? j : i], 1u);
    if (to.ends == Ends::kBoth && i != j) atomicAdd(&to.counts[j], 1u);
  }

  /// Many pairs of a warp's sums at a time. `itself`: those of a point with itself.
  __device__ void take_many(const ScreenWarp& warp, uint2 tile, unsigned long long pairs,
                            unsigned long long itself) const {
    using Ends = TileCounts::Ends;
    if (!__any_sync(~0u, pairs != 0)) return;
    if (to.ends == Ends::kLeft) return add_rows(warp, tile, pairs);
    if (to.ends == Ends::kBoth) {
      add_rows(warp, tile, pairs);
      return add_columns(warp, tile, pairs & ~itself);
    }
    const unsigned long long at_left = pairs & counting_at_left(warp, tile);
    add_rows(warp, tile, at_left);
    add_columns(warp, tile, pairs & ~at_left);
  }

 private:
  static constexpr unsigned kRows = 2 * ScreenWarp::kRowBlocks;
  static constexpr unsigned kColumns = 2 * ScreenWarp::kColumnBlocks;

  /// counts_at_left() of all the lane's pairs.
  __device__ unsigned long long counting_at_left(const ScreenWarp& warp, uint2 tile) const {
    std::int64_t left[kRows], right[kColumns];
#pragma unroll
    for (unsigned r = 0; r < kRows; ++r) left[r] = id(warp.row(tile, r / 2, r % 2 * 2));
#pragma unroll
    for (unsigned c = 0; c < kColumns; ++c) right[c] = id(warp.column(tile, c / 2, c % 2));
    unsigned long long at_left = 0;
    ScreenWarp::for_sums([&](unsigned m, unsigned n, unsigned e, unsigned long long bit) {
      const std::int64_t a = left[2 * m + e / 2], b = right[2 * n + e % 2];
      if (a != b ? a < b : warp.row(tile, m, e) < warp.column(tile, n, e)) at_left |= bit;
    });
    return at_left;
  }
  /// Rows beyond the last point have no ids, and no pairs.
  __device__ std::int64_t id(std::uint32_t position) const {
    return position < to.points ? to.ids[position] : 0;
  }

  /// Four lanes share a row.
  __device__ void add_rows(const ScreenWarp& warp, uint2 tile, unsigned long long pairs) const {
#pragma unroll
    for (unsigned r = 0; r < kRows; ++r) {
      const auto bits = static_cast<unsigned>(pairs >> (r / 2 * 16)) & 0x3333u << r % 2 * 2;
      unsigned number = __popc(bits);
      number += __shfl_xor_sync(~0u, number, 1);
      number += __shfl_xor_sync(~0u, number, 2);
      if (threadIdx.x % 4 == 0 && number > 0)
        atomicAdd(&to.counts[warp.row(tile, r / 2, r % 2 * 2)], number);
    }
  }
  /// Eight lanes share a column.
  __device__ void add_columns(const ScreenWarp& warp, uint2 tile, unsigned long long pairs) const {
#pragma unroll
    for (unsigned c = 0; c < kColumns; ++c) {
      const unsigned long long bits = pairs & 0x0005000500050005ull << (c / 2 * 4 + c % 2);
      auto number = static_cast<unsigned>(__popcll(bits));
      number += __shfl_xor_sync(~0u, number, 4);
      number += __shfl_xor_sync(~0u, number, 8);
      number += __shfl_xor_sync(~0u, number, 16);
      if (threadIdx.x % 32 < 4 && number > 0)
        atomicAdd(&to.counts[warp.column(tile, c / 2, c % 2)], number);
    }
  }
};

/// Gives a sink what the screen decides, and lists or decides the rest. The sink has, beside what
/// decide_kernel asks for, unless numbers are all that it needs,
///
///   void take_many(const ScreenWarp& warp, uint2 tile, unsigned long long pairs,
///                  unsigned long long itself);  on all lanes: pairs that surely are within eps
///
/// and may have, to choose what is listed,
///
///   unsigned long long open(const ScreenWarp& warp, uint2 tile, const ScreenWarp::Passed& passed);
template <PairSink Sink>
struct PairCounter {
  Decision decision;
  CandidateList open;
  Sink sink;
  // By the thread, in one launch: fewer than 2^32, for 64 of 2^23 pairs of tiles.
  unsigned found = 0, rechecked = 0, themselves = 0;

  __device__ void take(const ScreenWarp& warp, const ScreenView& view, uint2 tile) {
    ScreenWarp::Passed passed = warp.many_passed(view, tile);
    unsigned long long itself = 0;
    if (decision.self_join && tile.x == tile.y) {
      unsigned long long looked_at = 0;
      ScreenWarp::for_sums([&](unsigned m, unsigned n, unsigned e, unsigned long long bit) {
        const std::uint32_t i = warp.row(tile, m, e), j = warp.column(tile, n, e);
        if (is_looked_at(view.half, i, j)) looked_at |= bit;
        if (i == j) itself |= bit;
      });
      passed.all &= looked_at;
      passed.sure &= looked_at;
    }
    found += static_cast<unsigned>(__popcll(passed.sure));
    themselves += static_cast<unsigned>(__popcll(passed.sure & itself));
    if constexpr (Sink::kNeed != PairNeed::kNumber) sink.take_many(warp, tile, passed.sure, itself);
    passed.all = open_pairs(warp, tile, passed);
    passed.sure = 0;
    if (__any_sync(~0u, passed.all != 0))
      warp.append(passed, tile, open, [&](std::uint32_t i, std::uint32_t j) { decide(i, j); });
  }

  __device__ void finish() const {
    add_over_block<kScreenThreads>(found, decision.totals);
    add_over_block<kScreenThreads>(rechecked, decision.totals + 1);
    add_over_block<kScreenThreads>(themselves, decision.totals + 2);
  }

 private:
  __device__ unsigned long long open_pairs(const ScreenWarp& warp, uint2 tile,
                                           const ScreenWarp::Passed& passed) const {
    if constexpr (requires { sink.open(warp, tile, passed); })
      return sink.open(warp, tile, passed);
    else
      return passed.all & ~passed.sure;
  }

  __device__ void decide(std::uint32_t i, std::uint32_t j) {
    if (!is_wanted(sink, i, j)) return;
    ++rechecked;
    const double raw = raw_by_definition(decision, i, j);
    if (!(raw <= decision.threshold)) return;
    ++found;
    themselves += decision.self_join && i == j;
    if constexpr (Sink::kNeed == PairNeed::kDistance)
      sink.take(i, j, distance_from_raw(decision.metric, raw));
    else if constexpr (Sink::kNeed != PairNeed::kNumber)
      sink.take(i, j, 0);
  }
};

}  // namespace gpujoin::cuda
