// The sinks of the CPU's walks: each worker has one (core/pair_sink.h). Beside what every sink has,
// a sink of these walks may have
//
//   PairRoom room(std::uint64_t most);  where the next run is written, batch_entries at most
//   void end_row(std::uint32_t left);   the left point's turn is over; walks of grids only
//   void take_spread(...);              pairs that are not collected; SumSink in walks of grids
//   void serve_caller();                a piece of work is done
//   void finish();                      the walk is done; called for one worker after another
//
// Here are the outputs of joins of points and of boxes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "core/pair_sink.h"
#include "cpu/scan/tile_scan.h"
#include "cpu/walk/batch_writer.h"
#include "cpu/walk/join_plan.h"

namespace gpujoin::cpu {

/// Where a run is written. Past its end kCollectPadding places may be overwritten.
struct PairRoom {
  std::uint32_t* right;
  double* distances;  ///< null unless the sink needs them
};

template <class Sink>
concept HasRoom = requires(Sink sink, std::uint64_t most) {
  sink.room(most);
};

/// Such a sink needs not to know which pairs a number is of.
template <class Sink>
concept TakesTotals = requires(Sink sink, std::uint64_t entries) {
  sink.take_total(entries, entries);
};

/// Such a sink may want pairs as ScanKernel::spread() writes them.
template <class Sink>
concept TakesSpread = requires(Sink sink) {
  sink.takes_spread();
};

template <class Sink>
concept EndsRows = requires(Sink sink, std::uint32_t left) {
  sink.end_row(left);
};

/// Gives a sink the pairs of a run that lies elsewhere: batch_entries at most.
template <class Sink>
void give_copy(Sink& sink, PairRun run) {
  if constexpr (HasRoom<Sink>) {
    const PairRoom room = sink.room(run.count);
    run.right = std::copy_n(run.right, run.count, room.right) - run.count;
    if (run.distances != nullptr)
      run.distances = std::copy_n(run.distances, run.count, room.distances) - run.count;
  }
  give_run(sink, run);
}

/// Ends a piece of work.
template <class Sink>
void end_piece(WalkProgress& progress, Sink& sink) {
  progress.report();
  if constexpr (requires { sink.serve_caller(); }) sink.serve_caller();
}

template <class Sink>
void finish(Sink& sink) {
  if constexpr (requires { sink.finish(); }) sink.finish();
}

/// The number of all pairs.
class TotalSink {
 public:
  static constexpr PairNeed kNeed = PairNeed::kNumber;

  TotalSink(std::atomic<std::uint64_t>& total, bool mirrored)
      : total_(total), mirrored_(mirrored) {}

  void take_number(std::uint32_t, std::uint64_t entries, bool itself) {
    take_total(entries, itself);
  }
  void take_total(std::uint64_t entries, std::uint64_t self_pairs) {
    pairs_ += pairs_of_entries(mirrored_, entries, self_pairs);
  }
  void finish() { total_ += pairs_; }

 private:
  std::atomic<std::uint64_t>& total_;
  bool mirrored_;
  std::uint64_t pairs_ = 0;
};

/// Pairs, in batches.
template <PairNeed Need>
class PairBatchSink {
 public:
  static constexpr PairNeed kNeed = Need;

  /// `transposed` is as in ResultBatch.
  PairBatchSink(BatchWriter writer, bool mirrored, bool transposed = false)
      : writer_(writer), mirrored_(mirrored), transposed_(transposed) {}

  PairRoom room(std::uint64_t most) {
    batch_ = &writer_.make_room(most);
    batch_->transposed = transposed_;
    return {batch_->neighbors.data() + batch_->entry_count,
            Need == PairNeed::kDistance ? batch_->distances.data() + batch_->entry_count : nullptr};
  }
  void take_run(const PairRun& run) {
    writer_.add_row(*batch_, run.left, run.count,
                    pairs_of_entries(mirrored_, run.count, run.itself));
  }
  void serve_caller() { writer_.serve_caller(); }
  void finish() { writer_.flush(); }

 private:
  BatchWriter writer_;
  bool mirrored_;
  bool transposed_;
  BatchBuffer* batch_ = nullptr;  ///< where there was room last
};

/// Calls walk(make_sink) with the sink that writes pairs as the plan's output wants them.
template <class Walk>
void walk_into_batches(const JoinPlan& plan, const WalkTools& tools, const Walk& walk) {
  const auto make = [&]<PairNeed Need>(WalkProgress& progress) {
    return PairBatchSink<Need>(BatchWriter(tools.queue, progress, plan.batch_entries),
                               plan.mirrored());
  };
  if (wants_distances(plan.output))
    walk([&](WalkProgress& p) { return make.template operator()<PairNeed::kDistance>(p); });
  else
    walk([&](WalkProgress& p) { return make.template operator()<PairNeed::kPosition>(p); });
}

/// Counts of rows, in batches, from a walk that meets all pairs of a left point in its turn.
class RowCountWriter {
 public:
  explicit RowCountWriter(BatchWriter writer) : writer_(writer) {}

  void end_row(std::uint32_t left) { writer_.add_count(left, std::exchange(count_, 0)); }
  void serve_caller() { writer_.serve_caller(); }
  void finish() { writer_.flush(); }

 protected:
  std::uint64_t count_ = 0;  ///< of the row so far

 private:
  BatchWriter writer_;
};

class RowCountSink : public RowCountWriter {
 public:
  static constexpr PairNeed kNeed = PairNeed::kNumber;

  using RowCountWriter::RowCountWriter;

  void take_number(std::uint32_t, std::uint64_t entries, bool) { count_ += entries; }
};

/// Where each pair counts once (PairSelection::kUnordered).
class FirstRowCountSink : public RowCountWriter {
 public:
  static constexpr PairNeed kNeed = PairNeed::kPosition;

  FirstRowCountSink(BatchWriter writer, const std::int64_t* ids)
      : RowCountWriter(writer), ids_(ids) {}

  void take(std::uint32_t left, std::uint32_t right, double) {
    count_ += counts_at_left(ids_, left, right);
  }

 private:
  const std::int64_t* ids_;
};

/// Counts of rows from a walk that meets a pair at any time, by any worker: added up in `counts`,
/// [left points]. In half a walk a pair counts at both its points, or where each pair counts once
/// (PairSelection::kUnordered) at one of them.
class SharedCountSink {
 public:
  static constexpr PairNeed kNeed = PairNeed::kPosition;

  SharedCountSink(std::uint64_t* counts, const JoinPlan& plan)
      : counts_(counts),
        ids_(plan.left->ids.data()),
        half_(plan.self_join() && plan.half()),
        once_(plan.pairs == PairSelection::kUnordered),
        one_suffices_(plan.one_suffices) {}

  void take(std::uint32_t left, std::uint32_t right, double);
  /// See cpu/walk/tile_walker.h.
  void take_block(std::uint32_t first_left, std::uint32_t first_right,
                  const std::uint32_t (&rights)[kGroupPoints]);
  bool can_skip(Window left, Window right) const;

 private:
  bool is_done(Window points) const;

  std::uint64_t* counts_;
  const std::int64_t* ids_;
  bool half_;
  bool once_;
  bool one_suffices_;
};

}  // namespace gpujoin::cpu
