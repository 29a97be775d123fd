// The walk over rows of bits that agree in segments (core/hamming.h): pass after pass rows are put
// into buckets by the segments of the pass, and those of a bucket compared. A pair is taken in the
// pass of its first equal segments alone. Sinks are those of cpu/walk/pair_sinks.h; one that takes
// blocks has take(), too.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <type_traits>
#include <vector>

#include "core/hamming.h"
#include "cpu/walk/bit_plan.h"
#include "cpu/walk/pair_sinks.h"
#include "cpu/walk/walk_tools.h"

namespace gpujoin::cpu {

/// One worker's walk.
template <PairSink Sink>
class BitWalker {
 public:
  /// make_sink(progress) makes the worker's sink.
  template <class MakeSink>
  BitWalker(const JoinPlan& join, const BitPlan& plan, const WalkTools& tools,
            const MakeSink& make_sink)
      : join_(join),
        plan_(plan),
        pool_(tools.pool),
        progress_(tools.tally),
        sink(make_sink(progress_)),
        left_(tools.budget),
        right_(tools.budget),
        mask_(plan.words()),
        query_(plan.words()),
        piece_(static_cast<std::uint32_t>(
            std::clamp<std::uint64_t>(join.batch_entries, 1, kMostPiece))),
        places_(tools.budget, piece_ + kBitPadding),
        rights_(tools.budget, piece_),
        distances_(tools.budget, piece_) {}

  /// Joins the rows of a slice of a pass.
  void walk(std::uint64_t pass, std::uint32_t slice) {
    progress_.begin();
    set_ = plan_.passes[pass];
    const bool same = plan_.left == plan_.right;
    std::fill(mask_.begin(), mask_.end(), 0);
    for (std::uint32_t s = 0; s < plan_.segments.count; ++s)
      for (std::uint32_t w = 0; w < plan_.words() && (set_ >> s & 1) != 0; ++w)
        mask_[w] |= plan_.segments.masks[std::size_t{s} * plan_.words() + w];
    const BucketChoice choice{mask_.data(), slice, plan_.slices, plan_.bucket_bits};
    left_.fill(pool_, *plan_.left, choice);
    if (!same) right_.fill(pool_, *plan_.right, choice);
    const BitBuckets& right = same ? left_ : right_;
    std::uint64_t rows = 0;
    for (std::uint32_t bucket = 0; bucket >> plan_.bucket_bits == 0; ++bucket) {
      const Window lefts = left_.bucket(bucket), rights = right.bucket(bucket);
      if (lefts.begin == lefts.end || rights.begin == rights.end) continue;
      rows += lefts.end - lefts.begin;
      progress_.work += lefts.end - lefts.begin;
      for (std::uint32_t place = lefts.begin; place < lefts.end; ++place)
        walk_row(place, half() ? Window{place, rights.end} : rights, right);
      if (rows < kRowsOfPiece) continue;
      end_piece(progress_, sink);
      rows = 0;
    }
    end_piece(progress_, sink);
  }

  WalkProgress& progress() { return progress_; }

 private:
  static constexpr std::uint64_t kMostPiece = 4096, kRowsOfPiece = 1 << 12;
  static constexpr bool kDistances = Sink::kNeed == PairNeed::kDistance;

  bool half() const { return join_.self_join() && join_.half(); }

  /// A left row against right ones, some at a time.
  void walk_row(std::uint32_t place, Window others, const BitBuckets& right) {
    pool_.throw_if_stopped();
    const std::uint32_t row = left_.row(place);
    const BitRows bits = left_.bits();
    for (std::uint32_t w = 0; w < plan_.words(); ++w)
      query_[w] = bits.words[w * bits.stride + place];
    progress_.candidates += others.end - others.begin;
    for (std::uint32_t first = others.begin; first < others.end; first += piece_) {
      const Window piece{first, std::min(others.end, first + piece_)};
      const std::size_t near = plan_.scan.collect(query_.data(), right.bits(), plan_.words(),
                                                  plan_.most, piece, places_.data());
      if (near > 0) give(row, near, right);
    }
  }

  /// Gives the pairs away that are of this pass.
  void give(std::uint32_t row, std::size_t near, const BitBuckets& right) {
    const BitRows bits = right.bits();
    std::uint64_t count = 0;
    bool itself = false;
    for (std::size_t i = 0; i < near; ++i) {
      const std::uint32_t other = right.row(places_[i]);
      const bool self_pair = join_.self_join() && other == row;
      const std::uint64_t* const words = bits.words + places_[i];
      if ((self_pair && join_.pairs != PairSelection::kAll) || !is_of_pass(words, bits.stride) ||
          !are_keys_near(join_, row, other))
        continue;
      itself |= self_pair && half();
      rights_[count] = other;
      if (kDistances)
        distances_[count] = hamming_distance(query_.data(), 1, words, bits.stride, plan_.words());
      ++count;
    }
    if (count == 0) return;
    if constexpr (TakesNumbers<Sink>)
      sink.take_number(row, count, itself);
    else
      give_copy(sink,
                {row, rights_.data(), kDistances ? distances_.data() : nullptr, count, itself});
  }

  /// Whether the first segments in which the row of the query and another one are equal are those
  /// of the pass. Rows of one bucket may have but their hash in common.
  bool is_of_pass(const std::uint64_t* words, std::uint64_t stride) const {
    const std::uint64_t equal = equal_segments(query_.data(), 1, words, stride, plan_.words(),
                                               plan_.segments.masks.data(), plan_.segments.count);
    return (equal & set_) == set_ && first_members(equal, plan_.segments.equal) == set_;
  }

  const JoinPlan& join_;
  const BitPlan& plan_;
  WorkerPool& pool_;
  WalkProgress progress_;

 public:
  Sink sink;

 private:
  BitBuckets left_, right_;  ///< of a self-join the left ones alone
  std::uint64_t set_ = 0;    ///< the pass's segments
  std::vector<std::uint64_t> mask_, query_;
  const std::uint32_t piece_;  ///< right rows at a time
  Buffer<std::uint32_t> places_, rights_;
  Buffer<double> distances_;
};

/// Walks all passes on the workers that the plan has memory for, each with a sink of its own:
/// make_sink(progress).
template <class MakeSink>
void walk_passes(const JoinPlan& join, const BitPlan& plan, const WalkTools& tools,
                 const MakeSink& make_sink) {
  using Sink = std::invoke_result_t<const MakeSink&, WalkProgress&>;
  const std::uint64_t items = plan.passes.size() * plan.slices;
  const auto takers = static_cast<std::size_t>(std::min<std::uint64_t>(plan.walkers, items));
  std::deque<BitWalker<Sink>> walkers;
  for (std::size_t taker = 0; taker < takers; ++taker)
    walkers.emplace_back(join, plan, tools, make_sink);
  std::atomic<std::uint64_t> next{0};
  const std::uint64_t rows = std::max<std::uint64_t>(1, join.left->rows.size() / plan.slices);
  tools.tally.work.begin_walk(items * rows);
  tools.pool.parallel_for(takers, [&](std::size_t taker, unsigned) {
    for (std::uint64_t item; (item = next.fetch_add(1)) < items;) {
      tools.pool.throw_if_stopped();
      walkers[taker].progress().begin_task(rows);
      walkers[taker].walk(item / plan.slices, static_cast<std::uint32_t>(item % plan.slices));
      walkers[taker].progress().end_task();
    }
  });
  for (auto& walker : walkers) finish(walker.sink);
}

}  // namespace gpujoin::cpu
