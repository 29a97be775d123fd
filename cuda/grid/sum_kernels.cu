#include "cuda/grid/range_kernels.h"
#include "cuda/grid/range_walk.cuh"

namespace gpujoin::cuda {
namespace {

/// A program's value for a pair, NaN where it is NULL; *lost counts the values out of range.
__device__ double compute_value(const SumsView& sums, const ValueProgram& program,
                                std::uint32_t left, std::uint32_t right, double distance,
                                std::uint64_t* lost) {
  double stack[kMostValueDepth];
  std::uint32_t depth = 0;
  for (std::uint32_t i = 0; i < program.count; ++i) {
    const ValueStep step = program.steps[i];
    const std::uint64_t column = program.columns[i];
    if (step == ValueStep::kDistance) {
      stack[depth++] = distance;
    } else if (step == ValueStep::kLeft) {
      stack[depth++] = sums.left[column * sums.left_rows + left];
    } else if (step == ValueStep::kRight) {
      stack[depth++] = sums.right[column * sums.right_rows + right];
    } else {
      const bool two = step == ValueStep::kAdd || step == ValueStep::kSubtract ||
                       step == ValueStep::kMultiply || step == ValueStep::kDivide;
      if (two) --depth;
      bool leaves;
      const double a = stack[depth - 1];
      const double result = operate(step, a, two ? stack[depth] : a, &leaves);
      *lost += leaves;
      stack[depth - 1] = leaves ? nan("") : result;
    }
  }
  return stack[0];
}

/// Adds a pair up with the others of its left point that the thread has found.
__device__ void add_pair(const SumsView& sums, std::uint32_t left, std::uint32_t right,
                         double distance, FoldWord* words) {
  std::uint64_t* const lost = &words->number;
  std::uint32_t computed = kMostPrograms;  // none
  double value = 0;
  ++words;
  for (std::uint32_t m = 0; m < sums.asked.measures; ++m) {
    const Measure measure = sums.asked.measure[m];
    if (!computes(measure.fold)) {
      fold_integer(measure.fold, words, sums.integers[measure.number * sums.right_rows + right]);
    } else {
      if (measure.number != computed)
        value =
            compute_value(sums, sums.asked.program[measure.number], left, right, distance, lost);
      computed = measure.number;
      if (value == value) fold_value(measure.fold, words, value);
    }
    words += words_of(measure.fold);
  }
}

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
    add_pair(*sums, left, right, distance, words);
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
