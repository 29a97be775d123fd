// The walk of the grid: each left point against the points in its windows of the right index. A
// sink takes what is found, row by row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <type_traits>
#include <vector>

#include "core/several_distances.h"
#include "cpu/scan/scan.h"
#include "cpu/scan/sum_scan.h"
#include "cpu/walk/join_plan.h"
#include "cpu/walk/pair_sinks.h"
#include "cpu/walk/point_windows.h"
#include "cpu/walk/work_profile.h"
#include "engine/request/buffer.h"

namespace gpujoin::cpu {

/// One worker's walk.
template <PairSink Sink>
class Walker {
 public:
  /// make_sink(progress) makes the worker's sink.
  template <class MakeSink>
  Walker(const JoinPlan& plan, const WalkTools& tools, const MakeSink& make_sink)
      : plan_(plan),
        pool_(tools.pool),
        progress_(tools.tally),
        sink(make_sink(progress_)),
        windows_(plan),
        takes_blocks_(TakesTotals<Sink> && plan.kernel.count_block != nullptr &&
                      !plan.compares_keys() && (plan.half() || !plan.self_join())),
        collects_(plan.strategy.screened || plan.open_keys != 0),
        spreads_(may_spread()),
        query_(plan.left->dims) {
    scan_.tiles = plan.right->tiles.data();
    scan_.query = query_.data();
    scan_.dims = plan.left->dims;
    scan_.threshold = plan.strategy.screened ? plan.screen.reject : plan.threshold.raw;
    scan_.short_circuit = plan.strategy.short_circuit;
    const bool screened = plan.strategy.screened;
    const std::uint64_t room = PointWindows::kMaxPiece + kCollectPadding;
    if (kOnlyNumber ? collects_ : !HasRoom<Sink>)
      scratch_positions_ = Buffer<std::uint32_t>(tools.budget, room);
    if (kDistances ? !HasRoom<Sink> : screened || spreads_)
      scratch_raws_ = Buffer<double>(tools.budget, room);
  }

  /// Joins the left points at positions first .. end - 1, finite ones.
  void walk(std::uint32_t first, std::uint32_t end) {
    progress_.begin();
    windows_.start(first);
    std::uint32_t points = 1;
    for (std::uint32_t position = first; position < end; position += points) {
      pool_.throw_if_stopped();
      if constexpr (TakesTotals<Sink>) {
        if (takes_blocks_) points = windows_.move_to_block(position, end);
        if (points > 1) {
          take_block({position, position + points});
          continue;
        }
      }
      if (!takes_blocks_) windows_.move_to(position);
      plan_.left->load_point(position, query_.data());
      if constexpr (kOnlyNumber) {
        if (plan_.one_suffices)
          take_first(position);
        else
          take_number(position);
      } else if (spreads_) {
        take_spread(position);
      } else {
        take_runs(position);
      }
      if constexpr (EndsRows<Sink>) sink.end_row(position);
    }
    end_piece(progress_, sink);
  }

  WalkProgress& progress() { return progress_; }

 private:
  static constexpr bool kOnlyNumber = TakesNumbers<Sink>;
  static constexpr bool kDistances = Sink::kNeed == PairNeed::kDistance;
  static constexpr double kSpreadCandidates = 4;        ///< for a pair, at most
  static constexpr std::uint32_t kSpreadPlaces = 1024;  ///< in a piece, or up to twice as many

  /// Gives the number of pairs up to the first part of the windows that has some.
  void take_first(std::uint32_t position) {
    windows_.find_part([&](const Window& part) {
      pool_.throw_if_stopped();
      progress_.candidates += part.end - part.begin;
      progress_.work += part.end - part.begin;
      const std::uint64_t entries =
          collects_ ? collect(position, &part, 1, scratch_positions_.data(), nullptr)
                    : plan_.kernel.count(scan_, &part, 1);
      if (entries > 0) sink.take_number(position, entries, false);
      return entries > 0;
    });
  }

  void take_block(Window block) {
    note_windows();
    const auto& windows = windows_.windows();
    const std::uint64_t entries = plan_.kernel.count_block(
        scan_, plan_.left->tiles.data(), block, plan_.half(), windows.data(), windows.size());
    const bool selves = plan_.half() && plan_.pairs == PairSelection::kAll;  // their sums are 0
    const std::uint64_t self_pairs = selves ? block.end - block.begin : 0;
    sink.take_total(entries + self_pairs, self_pairs);
  }

  /// The windows' candidates are about to be compared.
  void note_windows() {
    constexpr std::uint64_t kReported = 1 << 26;  // candidates, about 20 ms of them
    if (progress_.candidates >= kReported) progress_.report();
    progress_.candidates += windows_.candidates();
    progress_.work += windows_.work();
  }

  void take_number(std::uint32_t position) {
    note_windows();
    std::uint64_t entries = 0;
    bool itself = false;
    windows_.for_pieces([&](const Window* windows, std::size_t count, std::uint64_t) {
      if (collects_) {
        std::uint32_t* const right = scratch_positions_.data();
        const std::size_t found = collect(position, windows, count, right, nullptr);
        itself = itself || begins_with_itself(position, right, found);
        entries += found;
      } else {
        entries += plan_.kernel.count(scan_, windows, count);
        itself = plan_.half() && plan_.pairs == PairSelection::kAll;  // its sum is 0
      }
      pool_.throw_if_stopped();
    });
    sink.take_number(position, entries, itself);
  }

  /// Pairs need not be collected where many candidates are pairs.
  bool may_spread() const {
    if constexpr (TakesSpread<Sink>)
      return sink.takes_spread() && !collects_ && !plan_.half() &&
             plan_.strategy.estimated_pairs * kSpreadCandidates >=
                 plan_.strategy.estimate().candidates;
    return false;
  }

  /// Gives the pairs in pieces that stay in the cache.
  void take_spread(std::uint32_t position) {
    if constexpr (TakesSpread<Sink>) {
      note_windows();
      std::size_t places = 0;
      spread_.clear();
      for (Window window : windows_.windows()) {
        while (window.begin < window.end) {
          const Window tiles = tiles_around(window);
          const Window part{window.begin, std::min(window.end, tiles.begin + kSpreadPlaces)};
          spread_.push_back(part);
          places += tiles_around(part).end - tiles.begin;
          window.begin = part.end;
          if (places >= kSpreadPlaces) {
            give_spread(position);
            places = 0;
          }
        }
      }
      if (places > 0) give_spread(position);
    }
  }

  void give_spread(std::uint32_t position) {
    double* const raws = scratch_raws_.data();
    const std::uint64_t found = plan_.kernel.spread(scan_, spread_.data(), spread_.size(), raws);
    if (found > 0)
      sink.take_spread(position, found, {spread_.data(), spread_.size(), raws},
                       plan_.metric == Metric::kL2);
    spread_.clear();
    pool_.throw_if_stopped();
  }

  void take_runs(std::uint32_t position) {
    note_windows();
    windows_.for_pieces([&](const Window* windows, std::size_t count, std::uint64_t most) {
      PairRoom room{scratch_positions_.data(), scratch_raws_.data()};
      if constexpr (HasRoom<Sink>) room = sink.room(most);
      double* const distances = kDistances ? room.distances : nullptr;
      const std::size_t found = collect(position, windows, count, room.right, distances);
      if (kDistances && plan_.metric == Metric::kL2) take_roots(distances, found);
      if (found > 0)
        give_run(sink, {position, room.right, distances, found,
                        begins_with_itself(position, room.right, found)});
      pool_.throw_if_stopped();
    });
  }

  /// The own cell's window comes first, and in half a walk begins with (p, p), where that is
  /// wanted. By rounding its cosine distance may be above eps.
  bool begins_with_itself(std::uint32_t position, const std::uint32_t* right,
                          std::size_t found) const {
    return plan_.half() && found > 0 && right[0] == position;
  }

  /// Collects the pairs of a left point. `raws` receives raw distances; it is null where none are
  /// wanted.
  std::size_t collect(std::uint32_t position, const Window* windows, std::size_t count,
                      std::uint32_t* right, double* raws) {
    const bool screened = plan_.strategy.screened;
    double* const sums = raws != nullptr || !screened ? raws : scratch_raws_.data();
    std::size_t passed = plan_.kernel.collect(scan_, windows, count, right, sums);
    for (std::uint32_t k = 0; k < plan_.keys.count; ++k)
      if ((plan_.open_keys >> k & 1) != 0) passed = keep_near(k, position, passed, right, sums);
    return screened ? recheck(position, passed, right, sums) : passed;
  }

  /// Keeps the pairs with keys near each other. No branch: half of the keys may be near.
  std::size_t keep_near(std::uint32_t key, std::uint32_t position, std::size_t count,
                        std::uint32_t* right, double* raws) const {
    if (plan_.keys.is_high_end(key)) return count;
    const double* const keys = plan_.right->keys_of(key);
    const double own = plan_.left->keys_of(key)[position], reach = plan_.keys.reach[key];
    if (!plan_.keys.is_interval(key))
      return keep(count, right, raws, [&](std::uint32_t other) -> bool {
        return std::fabs(own - keys[other]) <= reach;
      });
    const double* const ends = plan_.right->keys_of(key + 1);
    const double end = plan_.left->keys_of(key + 1)[position];
    return keep(count, right, raws, [&](std::uint32_t other) -> bool {
      return (own <= ends[other]) & (keys[other] <= end);
    });
  }

  template <class IsNear>
  static std::size_t keep(std::size_t count, std::uint32_t* right, double* raws,
                          const IsNear& is_near) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t other = right[kept] = right[i];
      if (raws != nullptr) raws[kept] = raws[i];
      kept += is_near(other) ? 1 : 0;
    }
    return kept;
  }

  /// Decides what a screen let pass, by the definition where the sum alone does not decide.
  std::size_t recheck(std::uint32_t position, std::size_t count, std::uint32_t* right,
                      double* raws) {
    std::size_t kept = 0;
    for (std::size_t first = 0; first < count; first += kPairsAtOnce) {
      const std::size_t end = std::min<std::size_t>(count, first + kPairsAtOnce);
      std::uint32_t looked_at[kPairsAtOnce];
      double exact[kPairsAtOnce];
      std::size_t looks = 0;
      for (std::size_t i = first; i < end; ++i)
        if (kDistances || !surely_matches(raws[i])) looked_at[looks++] = right[i];
      plan_.exact_raws(position, looked_at, looks, exact);
      looks = 0;
      for (std::size_t i = first; i < end; ++i) {
        const bool certain = surely_matches(raws[i]);
        progress_.rechecked += !certain;
        const double raw = kDistances || !certain ? exact[looks++] : raws[i];
        if (!certain && !(raw <= plan_.threshold.raw)) continue;
        right[kept] = right[i];
        raws[kept++] = raw;
      }
    }
    return kept;
  }
  bool surely_matches(double sum) const { return sum <= plan_.screen.accept; }

  const JoinPlan& plan_;
  WorkerPool& pool_;
  WalkProgress progress_;

 public:
  Sink sink;

 private:
  PointWindows windows_;
  const bool takes_blocks_;
  const bool collects_;  ///< pairs are looked at one by one, even where their number is wanted
  const bool spreads_;   ///< pairs are spread over their windows' tiles, not collected
  std::vector<double> query_;
  Scan scan_;
  Buffer<std::uint32_t> scratch_positions_;  ///< where the sink has no room for them
  Buffer<double> scratch_raws_;              ///< or a screen's sums are not part of the result
  std::vector<Window> spread_;               ///< a piece of the windows
};

/// What each left point costs a walk of cells.
WorkProfile profile_cells(const JoinPlan& plan);

/// Walks the left index on all workers, each with a sink of its own: make_sink(progress).
template <class MakeSink>
void walk_cells(const JoinPlan& plan, const WalkTools& tools, const MakeSink& make_sink) {
  using Sink = std::invoke_result_t<const MakeSink&, WalkProgress&>;
  std::deque<Walker<Sink>> walkers;
  for (unsigned worker = 0; worker < tools.pool.size(); ++worker)
    walkers.emplace_back(plan, tools, make_sink);

  const std::uint64_t points = plan.left->points;
  const std::uint64_t stretch = tools.stretch_of(points);
  const WorkProfile profile = profile_cells(plan);
  walk_tasks(
      tools, walkers, (points + stretch - 1) / stretch,
      [&](std::uint64_t task) {
        return profile.of(task * stretch, std::min(points, (task + 1) * stretch));
      },
      [&](Walker<Sink>& walker, std::uint64_t task) {
        walker.walk(static_cast<std::uint32_t>(task * stretch),
                    static_cast<std::uint32_t>(std::min(points, (task + 1) * stretch)));
      });
  if constexpr (EndsRows<Sink>)
    for (std::uint64_t position = points; position < plan.left->rows.size(); ++position)
      walkers[0].sink.end_row(static_cast<std::uint32_t>(position));  // no pairs: not finite
  for (auto& walker : walkers) finish(walker.sink);
}

/// The same for the plan's output, into the queue of batches. Returns the total where that is the
/// output.
std::uint64_t walk_cells(const JoinPlan& plan, const WalkTools& tools);

}  // namespace gpujoin::cpu
