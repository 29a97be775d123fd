// The definition's part: candidates that the screen leaves open are decided, and a sink takes the
// pairs (core/pair_sink.h). And the launches of both parts.
#pragma once

#include "core/pair_sink.h"
#include "cuda/device/kernel_helpers.cuh"
#include "cuda/device/tuning.h"
#include "cuda/tiles/tile_kernels.h"
#include "cuda/tiles/tile_screen.cuh"

namespace gpujoin::cuda {

/// The raw distance of two points by the definition.
template <class T>
__device__ double raw_of_pair(const Decision& decision, std::uint32_t i, std::uint32_t j) {
  const T* const left = static_cast<const T*>(decision.left_coordinates);
  const T* const right = static_cast<const T*>(decision.right_coordinates);
  return raw_distance(decision.metric, left + std::uint64_t{decision.left_order[i]} * decision.dims,
                      right + std::uint64_t{decision.right_order[j]} * decision.dims,
                      decision.dims);
}

/// Not inline, for it is rarely called and would take registers from the screen.
static __device__ __noinline__ double raw_by_definition(const Decision& decision, std::uint32_t i,
                                                        std::uint32_t j) {
  return decision.scalar == ScalarType::kFloat32 ? raw_of_pair<float>(decision, i, j)
                                                 : raw_of_pair<double>(decision, i, j);
}

/// The number of candidates to go through: 0 where all are wanted and not all fitted.
__device__ inline unsigned long long listed_candidates(const CandidateList& list, bool all) {
  const unsigned long long found = *list.found;
  return found <= list.capacity ? found : all ? 0 : list.capacity;
}

template <class Sink>
__device__ bool is_wanted(const Sink& sink, std::uint32_t i, std::uint32_t j) {
  if constexpr (requires { sink.wants(i, j); })
    return sink.wants(i, j);
  else
    return true;
}

/// Decides candidates. A sink takes the pairs, each on some thread; or it has
///
///   void take_candidate(unsigned long long candidate, bool found, std::uint32_t left,
///                       std::uint32_t right, double distance);
///
/// for every candidate, whose number it is given, pair or not; such a sink gets all or none. And a
/// sink may have, for what it has learnt since candidates were listed,
///
///   bool wants(std::uint32_t left, std::uint32_t right) const;
template <class T, PairSink Sink>
__global__ void __launch_bounds__(kBlockThreads)
    decide_kernel(Decision decision, CandidateList candidates, Sink sink) {
  constexpr bool kDistances = Sink::kNeed == PairNeed::kDistance;
  constexpr bool kEveryCandidate = requires {
    sink.take_candidate(0ull, true, std::uint32_t{}, std::uint32_t{}, 0.0);
  };
  const unsigned long long size = listed_candidates(candidates, kEveryCandidate);
  unsigned long long found = 0, rechecked = 0, themselves = 0;
  for (unsigned long long c = global_thread(); c < size; c += global_threads()) {
    const uint2 pair = candidates.pairs[c];
    const std::uint32_t i = pair.x & ~CandidateList::kSurely, j = pair.y;
    const bool surely = (pair.x & CandidateList::kSurely) != 0;
    if (!is_wanted(sink, i, j)) continue;
    bool within = surely;
    double distance = 0;
    if (!surely || kDistances) {
      const double raw = raw_of_pair<T>(decision, i, j);
      rechecked += !surely;
      within = raw <= decision.threshold;
      if (kDistances) distance = distance_from_raw(decision.metric, raw);
    }
    found += within;
    themselves += within && decision.self_join && i == j;
    if constexpr (kEveryCandidate)
      sink.take_candidate(c, within, i, j, distance);
    else if constexpr (Sink::kNeed != PairNeed::kNumber)
      if (within) sink.take(i, j, distance);
  }
  add_over_block(found, decision.totals);
  add_over_block(rechecked, decision.totals + 1);
  add_over_block(themselves, decision.totals + 2);
}

inline unsigned resident_blocks(int multiprocessors) {
  return static_cast<unsigned>(multiprocessors) * kBlocksPerMultiprocessor;
}

template <class Taker>
void screen(const ScreenView& view, const TileList& list, const Taker& taker, int multiprocessors,
            cudaStream_t stream) {
  launch_screen_kernel(choose_pair_screen(shared_memory(), 0), view, list, taker, multiprocessors,
                       stream);
}

template <PairSink Sink>
void decide(const Decision& decision, const CandidateList& candidates, const Sink& sink,
            int multiprocessors, cudaStream_t stream) {
  const unsigned blocks = resident_blocks(multiprocessors);
  if (decision.scalar == ScalarType::kFloat32)
    decide_kernel<float><<<blocks, kBlockThreads, 0, stream>>>(decision, candidates, sink);
  else
    decide_kernel<double><<<blocks, kBlockThreads, 0, stream>>>(decision, candidates, sink);
  check_launch("deciding pairs");
}

}  // namespace gpujoin::cuda
