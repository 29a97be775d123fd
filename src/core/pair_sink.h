// What happens to the pairs that a walk finds: they are counted, written, admitted among the best.
// The seam between walks and outputs, for host and device: each walk is a template over a sink, so
// that a new output is a new sink and no new walk, and costs what it needs and no more. Types and
// rules only: memory, batches and the order of the work belong to the engines.
//
// A sink has
//
//   static constexpr PairNeed kNeed;
//   void take(std::uint32_t left, std::uint32_t right, double distance);
//
// take() is called once for each pair that is met. In half a walk of a self-join, that is one of
// the two orders of each pair, and self-pairs where they are wanted. The order of the calls is the
// walk's. Unless kNeed is kDistance, the distance is 0.
//
// What is faster, or lets a sink know more, may stand in the place of take():
//
//   void take_number(std::uint32_t left, std::uint64_t entries, bool itself);   kNeed = kNumber
//   void take_run(const PairRun& run);
//
// on the CPU; and each walk offers more, which its header lists: cpu/walk/pair_sinks.h,
// cpu/walk/tile_walker.h, cuda/grid/range_walk.cuh, cuda/tiles/tile_kernels.cu. On the CPU each
// worker has a sink of its own, on the device each thread has a copy of one sink: what they share
// is for them to synchronise.
#pragma once

#include <concepts>
#include <cstdint>

#include "core/portability.h"

namespace gpujoin {

/// What a sink needs of the pairs.
enum class PairNeed : std::int32_t {
  kNumber,    ///< how many they are
  kPosition,  ///< and which: their positions
  kDistance,  ///< and their distances
};

/// Pairs of one left point.
struct PairRun {
  std::uint32_t left;
  const std::uint32_t* right;  ///< [count]
  const double* distances;     ///< [count], or null unless the sink needs them
  std::uint64_t count;
  bool itself;  ///< in half a walk: one of them is the left point's self-pair
};

template <class Sink>
concept PairSink = requires {
  { Sink::kNeed } -> std::convertible_to<PairNeed>;
};

template <class Sink>
concept TakesPairs = PairSink<Sink> && requires(Sink sink, std::uint32_t position) {
  sink.take(position, position, double{});
};

template <class Sink>
concept TakesRuns = PairSink<Sink> && requires(Sink sink, const PairRun& run) {
  sink.take_run(run);
};

/// Such a sink needs no pair that is not counted with others.
template <class Sink>
concept TakesNumbers = PairSink<Sink> &&
                       Sink::kNeed == PairNeed::kNumber&& requires(Sink sink, std::uint32_t left,
                                                                   std::uint64_t entries) {
  sink.take_number(left, entries, true);
};

/// Gives a sink the pairs of a run.
template <class Sink>
GPUJOIN_HD inline void give_run(Sink& sink, const PairRun& run) {
  if constexpr (TakesRuns<Sink>) {
    sink.take_run(run);
  } else {
    for (std::uint64_t i = 0; i < run.count; ++i)
      sink.take(run.left, run.right[i], Sink::kNeed == PairNeed::kDistance ? run.distances[i] : 0);
  }
}

/// The pairs that entries stand for: where they are mirrored, an entry stands for both orders of
/// its pair, but a self-pair has only one.
GPUJOIN_HD inline std::uint64_t pairs_of_entries(bool mirrored, std::uint64_t entries,
                                                 std::uint64_t self_pairs) {
  return mirrored ? 2 * entries - self_pairs : entries;
}

/// Whether a pair of a self-join counts at its left point, and not at its right one, where each
/// pair counts once: at the smaller id; ids need not be unique, so then at the earlier position.
GPUJOIN_HD inline bool counts_at_left(const std::int64_t* ids, std::uint32_t left,
                                      std::uint32_t right) {
  return ids[left] != ids[right] ? ids[left] < ids[right] : left < right;
}

}  // namespace gpujoin
