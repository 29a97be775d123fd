// The sink of Output::kSums for the walks of joins of points: what pairs add to the sums of their
// left point, for walks that meet each pair at its left point.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "core/pair_sink.h"
#include "cpu/scan/sum_scan.h"
#include "cpu/walk/join_plan.h"
#include "cpu/walk/walk_tools.h"
#include "engine/request/buffer.h"
#include "engine/request/pair_sums.h"

namespace gpujoin::cpu {

/// The columns of sums in the order of the indexes.
struct SumColumns {
  /// Throws MemoryLimitExceeded or std::bad_alloc.
  SumColumns(MemoryBudget& budget, const PairSums& sums, const GridIndex& left,
             const GridIndex& right);

  double left_number(std::uint32_t column, std::uint32_t position) const {
    return left[column * left_points + position];
  }
  const double* right_numbers(std::uint32_t column) const {
    return right.data() + column * right_points;
  }
  const std::int64_t* integers_of(std::uint32_t column) const {
    return integers.data() + column * right_points;
  }

  const PairSums& sums;
  std::uint64_t left_points, right_points;  ///< finite ones or not
  Buffer<double> left, right;               ///< [columns][points], then the rest of a tile
  Buffer<std::int64_t> integers;            ///< likewise
};

/// The sums of all left points, which workers share: any worker may meet a pair of any point.
class SumTable {
 public:
  /// No pairs so far. Throws MemoryLimitExceeded or std::bad_alloc.
  SumTable(MemoryBudget& budget, const PairSums& sums, std::uint64_t left_points);

  /// Adds the number and the sums of some pairs of a left point.
  void add(std::uint32_t left, std::uint64_t pairs, const FoldWord* words);

  std::uint32_t width() const { return width_; }
  std::uint64_t pairs(std::uint64_t left) const { return counts_[left]; }
  const FoldWord* words(std::uint64_t left) const { return words_.data() + left * width_; }

 private:
  static constexpr std::uint32_t kLocks = 256;

  const PairSums& sums_;
  std::uint32_t width_;  ///< row_words()
  Buffer<std::uint64_t> counts_;
  Buffer<FoldWord> words_;  ///< [left points][width_]
  std::atomic_flag locks_[kLocks] = {};
};

/// What one worker has found of the left point at hand.
class SumAccount {
 public:
  SumAccount(const SumColumns& columns, SumTable& table);

  /// The pairs of one point; distances are null where no program wants them.
  void take(const PairRun& run);
  /// The same of pairs whose number is told, where takes_spread(sums); `squared`: raw distances are
  /// the squares.
  void take(std::uint32_t left, std::uint64_t number, const SpreadPairs& pairs, bool squared);
  /// Adds what was found to the table.
  void flush();

 private:
  static constexpr std::uint32_t kChunk = 256;  ///< pairs whose values are computed together

  void turn_to(std::uint32_t left);
  void take_chunk(const std::uint32_t* right, const double* distances, std::uint32_t count);
  const double* compute(const ValueProgram& program, const std::uint32_t* right,
                        const double* distances, std::uint32_t count);

  const SumColumns& columns_;
  SumTable& table_;
  std::uint32_t left_ = 0;
  std::uint64_t pairs_ = 0;
  FoldWord words_[kMostSumWords];
  double stack_[kMostValueDepth][kChunk];  ///< of programs
  std::vector<PlainSum> plain_;            ///< where takes_spread(): of programs, distances first
  std::uint32_t plain_of_[kMostPrograms];
};

/// Whether what is wanted of the pairs can be had of spread ones, without their positions: sums and
/// numbers of columns as they are, and of distances.
bool takes_spread(const PairSums& sums);

/// A worker's sink. `ids`, of the left and only side, are null unless each pair counts once
/// (PairSelection::kUnordered).
template <PairNeed Need>
class SumSink {
 public:
  static constexpr PairNeed kNeed = Need;

  SumSink(const SumColumns& columns, SumTable& table, const std::int64_t* ids)
      : account_(columns, table),
        ids_(ids),
        spread_(ids == nullptr && cpu::takes_spread(columns.sums)) {}

  void take_run(const PairRun& run) {
    if (ids_ == nullptr) return account_.take(run);
    for (std::uint64_t i = 0; i < run.count; ++i)
      if (counts_at_left(ids_, run.left, run.right[i]))
        account_.take({run.left, run.right + i,
                       run.distances != nullptr ? run.distances + i : nullptr, 1, false});
  }
  bool takes_spread() const { return spread_; }
  void take_spread(std::uint32_t left, std::uint64_t number, const SpreadPairs& pairs,
                   bool squared) {
    account_.take(left, number, pairs, squared);
  }
  void finish() { account_.flush(); }

 private:
  SumAccount account_;
  const std::int64_t* ids_;
  bool spread_;
};

/// Walks by walk(make_sink), and puts sums of all left points into the queue of batches.
template <class Walk>
void sum_rows(const JoinPlan& plan, const WalkTools& tools, const Walk& walk);

/// Puts them there.
void write_sums(const JoinPlan& plan, const WalkTools& tools, const SumTable& table);

template <class Walk>
void sum_rows(const JoinPlan& plan, const WalkTools& tools, const Walk& walk) {
  const SumColumns columns(tools.budget, *plan.sums, *plan.left, *plan.right);
  SumTable table(tools.budget, *plan.sums, plan.left->rows.size());
  const std::int64_t* const ids =
      plan.pairs == PairSelection::kUnordered ? plan.left->ids.data() : nullptr;
  if (wants_distance(*plan.sums))
    walk([&](WalkProgress&) { return SumSink<PairNeed::kDistance>(columns, table, ids); });
  else
    walk([&](WalkProgress&) { return SumSink<PairNeed::kPosition>(columns, table, ids); });
  write_sums(plan, tools, table);
}

}  // namespace gpujoin::cpu
