#include "cuda/grid/range_kernels.h"
#include "cuda/grid/range_walk.cuh"

namespace gpujoin::cuda {
namespace {

/// A pair whose numbers are added up with those of the others of its left point.
struct SummedPair {
  const SumsView& sums;
  std::uint32_t left, right;
  double distance;

  __device__ double number(ValueStep step, std::uint32_t column) const {
    if (step == ValueStep::kDistance) return distance;
    return step == ValueStep::kLeft ? sums.left[std::uint64_t{column} * sums.left_rows + left]
                                    : sums.right[std::uint64_t{column} * sums.right_rows + right];
  }
  __device__ std::int64_t integer(std::uint32_t number) const {
    return sums.integers[std::uint64_t{number} * sums.right_rows + right];
  }
};

/// What sinks of sums have in common. All pairs of a left point are found by one group of threads,
/// so that words are added up in the threads' own memory, and written once.
struct PointSums {
  static constexpr PairNeed kNeed = PairNeed::kDistance;

  const SumsView* sums;
  std::uint32_t* counts;
  unsigned long long* total;
  unsigned long long* all_candidates;
  unsigned long long found = 0;  // by the thread
  std::uint32_t index = 0;
  std::uint32_t left = 0;
  std::uint32_t pairs = 0;  // of the point

  __device__ void begin_point(std::uint32_t place, std::uint32_t position) {
    index = place;
    left = position;
    pairs = 0;
  }
  /// Where the point's words go, once its number of pairs is written.
  __device__ FoldWord* end_point() {
    counts[index] = pairs;
    return sums->words + std::uint64_t{left} * sums->width;
  }
  __device__ void finish(unsigned long long candidates) {
    add_over_block(found, total);
    add_over_block(candidates, all_candidates);
  }
};

struct SumSink : PointSums {
  FoldWord words[kMostSumWords];

  __device__ void begin(std::uint32_t place, std::uint32_t position) {
    begin_point(place, position);
    clear_row(sums->asked, words);
  }
  __device__ void take(std::uint32_t left, std::uint32_t right, double distance) {
    ++pairs;
    fold_pair(sums->asked, SummedPair{*sums, left, right, distance}, words);
  }
  template <std::uint32_t G>
  __device__ void end(const Group<G>& group) {
    found += pairs;
    for (std::uint32_t offset = G / 2; offset > 0; offset /= 2) {
      pairs += group.shfl_down(pairs, offset);
      FoldWord others[kMostSumWords];
      for (std::uint32_t w = 0; w < sums->width; ++w)
        others[w].number = group.shfl_down(words[w].number, offset);
      merge_rows(sums->asked, words, others);
    }
    if (group.thread_rank() != 0) return;
    FoldWord* const row = end_point();
    for (std::uint32_t w = 0; w < sums->width; ++w) row[w] = words[w];
  }
};

/// The same, in registers.
struct FewSumsSink : PointSums {
  FewSums few;
  DoubleSum reals[FewSums::kMost];
  std::uint64_t integers[FewSums::kMost];

  __device__ void begin(std::uint32_t place, std::uint32_t position) {
    begin_point(place, position);
#pragma unroll
    for (std::uint32_t m = 0; m < FewSums::kMost; ++m) {
      reals[m] = no_sum();
      integers[m] = 0;
    }
  }
  __device__ void take(std::uint32_t, std::uint32_t right, double distance) {
    ++pairs;
#pragma unroll
    for (std::uint32_t m = 0; m < FewSums::kMost; ++m) {
      if (m >= few.count) continue;
      if (few.is_integer[m]) {
        integers[m] += static_cast<std::uint64_t>(few.integers[m][right]);
      } else {
        const double value = few.reals[m] != nullptr ? few.reals[m][right] : distance;
        if (value == value) reals[m].add(value);
      }
    }
  }
  template <std::uint32_t G>
  __device__ void end(const Group<G>& group) {
    found += pairs;
#pragma unroll
    for (std::uint32_t offset = G / 2; offset > 0; offset /= 2) {
      pairs += group.shfl_down(pairs, offset);
#pragma unroll
      for (std::uint32_t m = 0; m < FewSums::kMost; ++m) {
        integers[m] += group.shfl_down(integers[m], offset);
        reals[m].add(group.shfl_down(reals[m].high, offset), group.shfl_down(reals[m].low, offset));
      }
    }
    if (group.thread_rank() != 0) return;
    FoldWord* word = end_point();
    (word++)->number = 0;  // nothing leaves the range
#pragma unroll
    for (std::uint32_t m = 0; m < FewSums::kMost; ++m) {
      if (m >= few.count) continue;
      if (few.is_integer[m]) {
        (word++)->number = integers[m];
      } else {
        (word++)->real = reals[m].high;
        (word++)->real = reals[m].low;
      }
    }
  }
};

}  // namespace

void launch_sums(const KernelChoice& choice, const JoinView& join, const Stretch& stretch,
                 const DeviceSums& sums, std::uint32_t* counts, unsigned long long* total,
                 unsigned long long* candidates, cudaStream_t stream) {
  // What is added up costs more than distances do, so that few kernels are enough.
  KernelChoice few = choice;
  few.threads_per_point = choice.threads_per_point >= 8 ? 32 : 1;
  const auto launch_sink = [&](auto sink) {
    sink.sums = sums.view();
    sink.counts = counts;
    sink.total = total;
    sink.all_candidates = candidates;
    launch_walk(few, join, stretch, sink, "adding up pairs", stream, [&](const auto& launch) {
      dispatch_dimensions<2, 3>(few, [&]<Metric M, class T, std::uint32_t D>() {
        if (few.threads_per_point == 32)
          launch.template operator()<M, T, D, 32>();
        else
          launch.template operator()<M, T, D, 1>();
      });
    });
  };
  if (sums.few().count == 0) return launch_sink(SumSink{});
  FewSumsSink sink{};
  sink.few = sums.few();
  launch_sink(sink);
}

}  // namespace gpujoin::cuda
