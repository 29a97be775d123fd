// The walk over dense tiles: tiles of the left index against tiles of the right one whose boxes
// come near, screened group by group and, where the screen does not decide, decided by the
// definition. A sink takes what is found: pairs of a left point in runs of one group on the right,
// and one left point's runs one after another as far as a stretch of tiles goes; or, where the sink
// has
//
//   void take_block(std::uint32_t first_left, std::uint32_t first_right,
//                   const std::uint32_t (&rights)[kGroupPoints]);
//
// the pairs of two groups at once: bit j of rights[i] is the pair (first_left + i, first_right +
// j). Before points are compared, of two tiles or of two groups of them, such a sink may be asked
//
//   bool can_skip(Window left, Window right);
//
// whether it needs none of their pairs.
//
// Rows of bits are compared in the same way, but exactly; or, where their plan has passes, by
// cpu/walk/bit_walker.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <type_traits>

#include "cpu/index/tile_index.h"
#include "cpu/scan/tile_scan.h"
#include "cpu/walk/bit_walker.h"
#include "cpu/walk/join_plan.h"
#include "cpu/walk/pair_sinks.h"
#include "cpu/walk/work_profile.h"
#include "engine/request/buffer.h"

namespace gpujoin::cpu {

/// What every worker of a join by tiles reads and none writes.
struct TilePlan {
  const JoinPlan* join;
  const TileIndex* left;
  const TileIndex* right;  ///< the same as left in a self-join
  Checkpoints checkpoints;
  GroupScreen screen;
  double reach;        ///< true_reach()
  double accept = -1;  ///< ScreenBounds::accept where boxes are of all columns; else negative
  const BitPlan* bits = nullptr;  ///< of bits, whose tiles have neither values nor boxes

  /// Whether half of the matrix of tiles is enough: in a self-join, unless it has to be walked in
  /// full.
  bool half() const { return join->self_join() && join->half(); }
};

/// Which pairs of two groups are wanted and may be within eps: false if none.
bool screen_groups(const TilePlan& plan, std::uint32_t row_group, std::uint32_t column_group,
                   GroupPairs* pairs);

/// How many pairs of two groups a walk compares.
std::uint64_t candidates_of_groups(const TilePlan& plan, std::uint32_t row_group,
                                   std::uint32_t column_group);

/// Takes away the possible pairs that by the definition are not within eps. Returns how many pairs
/// it had to decide.
std::uint64_t settle_groups(const TilePlan& plan, std::uint32_t row_group,
                            std::uint32_t column_group, GroupPairs* pairs);

/// What a task of a walk of tiles costs: a left tile and right tiles first .. end - 1.
class TileWork {
 public:
  explicit TileWork(const TilePlan& plan);
  std::uint64_t of(std::uint32_t tile, std::uint32_t first, std::uint32_t end) const;

 private:
  const TilePlan& plan_;
  const WorkProfile profile_;  ///< of left tiles with all their right ones
};

template <class Sink>
concept TakesBlocks = requires(Sink sink, const std::uint32_t (&rights)[kGroupPoints]) {
  sink.take_block(std::uint32_t{}, std::uint32_t{}, rights);
};

/// One worker's walk.
template <PairSink Sink>
class TileWalker {
 public:
  /// make_sink(progress) makes the worker's sink.
  template <class MakeSink>
  TileWalker(const TilePlan& plan, const WalkTools& tools, const MakeSink& make_sink)
      : plan_(plan),
        pool_(tools.pool),
        progress_(tools.tally),
        sink(make_sink(progress_)),
        found_(tools.budget, kAtOnce ? 1 : kTileGroups * kStretch) {}

  /// Joins a tile of the left with the tiles first .. end - 1 of the right. Half a walk of a
  /// self-join leaves out the right tiles that come before the left one, so that all calls together
  /// meet each pair once.
  void walk(std::uint32_t tile, std::uint32_t first, std::uint32_t end) {
    progress_.begin();
    if (plan_.half()) first = std::max(first, tile);
    const Boxes& left = plan_.left->tile_boxes;
    const Boxes& right = plan_.right->tile_boxes;
    std::uint32_t gathered = 0;
    for (std::uint32_t column_tile = first; column_tile < end; ++column_tile) {
      if (!may_meet(left.columns, left.at(tile), right.at(column_tile), plan_.reach)) continue;
      if (can_skip(plan_.left->points_of_tile(tile), plan_.right->points_of_tile(column_tile)))
        continue;
      walk_tile(tile, column_tile);
      gathered += kTileGroups;
      if (gathered < kStretch) continue;
      end_stretch(tile);
      gathered = 0;
    }
    end_stretch(tile);
  }

  WalkProgress& progress() { return progress_; }

 private:
  static constexpr std::uint32_t kStretch = 32;  ///< groups on the right that rows are gathered of
  static constexpr bool kDistances = Sink::kNeed == PairNeed::kDistance;
  /// Whether pairs are taken as they are found, and not row by row.
  static constexpr bool kAtOnce = TakesBlocks<Sink> || TakesNumbers<Sink>;

  void walk_tile(std::uint32_t tile, std::uint32_t column_tile) {
    if constexpr (TakesNumbers<Sink>)
      if (take_whole_tile(tile, column_tile)) return;
    const Boxes& left = plan_.left->group_boxes;
    const Boxes& right = plan_.right->group_boxes;
    const std::uint32_t first_row = tile * kTileGroups;
    const std::uint32_t end_row = std::min(plan_.left->groups(), first_row + kTileGroups);
    const std::uint32_t first_column = column_tile * kTileGroups;
    const std::uint32_t end_column = std::min(plan_.right->groups(), first_column + kTileGroups);
    // A group of columns stays in the cache while all rows pass it.
    for (std::uint32_t column = first_column; column < end_column; ++column) {
      pool_.throw_if_stopped();
      for (std::uint32_t row = first_row; row < end_row; ++row) {
        if (plan_.half() && column < row) break;
        if (may_meet(left.columns, left.at(row), right.at(column), plan_.reach))
          walk_groups(row, column);
      }
    }
  }

  /// Counts two tiles by their sizes, where their boxes prove all pairs.
  bool take_whole_tile(std::uint32_t tile, std::uint32_t column_tile) {
    const TileIndex &left = *plan_.left, &right = *plan_.right;
    if ((plan_.join->self_join() && tile == column_tile) ||
        !surely_match(left.tile_boxes.columns, left.tile_boxes.at(tile),
                      right.tile_boxes.at(column_tile), plan_.accept))
      return false;
    const std::uint32_t rows = left.tile_size(tile), columns = right.tile_size(column_tile);
    progress_.candidates += std::uint64_t{rows} * columns;
    progress_.work += std::uint64_t{rows} * columns;
    for (std::uint32_t i = 0; i < rows; ++i)
      sink.take_number(tile * kScreenTile + i, columns, false);
    return true;
  }

  bool can_skip(Window left, Window right) {
    if constexpr (requires(Sink asked) { asked.can_skip(left, right); })
      return sink.can_skip(left, right);
    return false;
  }

  void walk_groups(std::uint32_t row_group, std::uint32_t column_group) {
    if (can_skip(plan_.left->points_of_group(row_group),
                 plan_.right->points_of_group(column_group)))
      return;
    const std::uint64_t candidates = candidates_of_groups(plan_, row_group, column_group);
    if (candidates == 0) return;
    progress_.candidates += candidates;
    progress_.work += candidates;
    const std::uint32_t list = row_group % kTileGroups;
    GroupPairs& pairs = found_[kAtOnce ? 0 : list * kStretch + found_count_[list]];
    if (!screen_groups(plan_, row_group, column_group, &pairs)) return;
    if (!kDistances) progress_.rechecked += settle_groups(plan_, row_group, column_group, &pairs);
    if constexpr (kAtOnce)
      take_at_once(row_group, column_group, pairs.possible);
    else
      found_groups_[list][found_count_[list]++] = column_group;
  }

  void take_at_once(std::uint32_t row_group, std::uint32_t column_group,
                    const std::uint32_t (&rights)[kGroupPoints]) {
    const std::uint32_t first = row_group * kGroupPoints;
    if constexpr (TakesBlocks<Sink>) {
      sink.take_block(first, column_group * kGroupPoints, rights);
    } else {
      const bool diagonal = plan_.half() && row_group == column_group;
      for (std::uint32_t i = 0; i < kGroupPoints; ++i)
        sink.take_number(first + i, static_cast<std::uint64_t>(std::popcount(rights[i])),
                         diagonal && (rights[i] >> i & 1) != 0);
    }
  }

  void end_stretch(std::uint32_t tile) {
    if constexpr (!kAtOnce) give_stretch(tile);
    end_piece(progress_, sink);
  }

  /// Gives the gathered pairs away, row by row.
  void give_stretch(std::uint32_t tile) {
    for (std::uint32_t list = 0; list < kTileGroups; ++list) {
      const std::uint32_t count = found_count_[list];
      const std::uint32_t first_row = (tile * kTileGroups + list) * kGroupPoints;
      for (std::uint32_t i = 0; i < kGroupPoints && count > 0; ++i) {
        for (std::uint32_t at = 0; at < count; ++at) {
          const GroupPairs& pairs = found_[list * kStretch + at];
          if (pairs.possible[i] != 0)
            give_row(first_row + i, found_groups_[list][at], pairs.possible[i], pairs.sure[i]);
        }
      }
      found_count_[list] = 0;
    }
  }

  /// Gives a point's pairs with points of one group, no more at a time than fit in a batch.
  void give_row(std::uint32_t position, std::uint32_t column_group, std::uint32_t possible,
                std::uint32_t sure) {
    std::uint32_t rights[kGroupPoints] = {};
    double distances[kGroupPoints];
    std::uint32_t count = 0;
    for_bits(possible, [&](std::uint32_t j) { rights[count++] = column_group * kGroupPoints + j; });
    if (kDistances) count = keep_exact(position, sure, rights, distances, count);
    const bool diagonal = plan_.half() && column_group == position / kGroupPoints;
    const auto most = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(kGroupPoints, plan_.join->batch_entries));
    for (std::uint32_t at = 0; at < count; at += most) {
      const std::uint32_t size = std::min(most, count - at);
      const bool itself = diagonal && std::count(rights + at, rights + at + size, position) > 0;
      give_copy(sink, {position, rights + at, kDistances ? distances + at : nullptr, size, itself});
    }
  }

  /// Finds the distances of points of one group, and leaves out those that are not within eps.
  /// Returns how many are left.
  std::uint32_t keep_exact(std::uint32_t position, std::uint32_t sure, std::uint32_t* rights,
                           double* distances, std::uint32_t count) {
    const JoinPlan& join = *plan_.join;
    join.exact_raws(position, rights, count, distances);
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const bool certain = sure >> rights[i] % kGroupPoints & 1;
      progress_.rechecked += !certain;
      if (!certain && !(distances[i] <= join.threshold.raw)) continue;
      rights[kept] = rights[i];
      distances[kept++] = distance_from_raw(join.metric, distances[i]);
    }
    return kept;
  }

  const TilePlan& plan_;
  WorkerPool& pool_;
  WalkProgress progress_;

 public:
  Sink sink;

 private:
  Buffer<GroupPairs> found_;  ///< [kTileGroups][kStretch]: groups with pairs of each row group
  std::uint32_t found_groups_[kTileGroups][kStretch] = {};  ///< where on the right
  std::uint32_t found_count_[kTileGroups] = {};
};

/// Walks all tiles on all workers, each with a sink of its own: make_sink(progress).
template <class MakeSink>
void walk_tiles(const TilePlan& plan, const WalkTools& tools, const MakeSink& make_sink) {
  using Sink = std::invoke_result_t<const MakeSink&, WalkProgress&>;
  if (plan.bits != nullptr && !plan.bits->passes.empty())
    return walk_passes(*plan.join, *plan.bits, tools, make_sink);
  std::deque<TileWalker<Sink>> walkers;
  for (unsigned worker = 0; worker < tools.pool.size(); ++worker)
    walkers.emplace_back(plan, tools, make_sink);

  // Where there are few tiles on the left, several workers share one.
  const std::uint64_t rows = plan.left->tiles(), columns = plan.right->tiles();
  const std::uint64_t parts =
      rows == 0 ? 0 : std::min<std::uint64_t>(columns, (64 * tools.pool.size() + rows - 1) / rows);
  const TileWork work(plan);
  const auto with_tiles = [&](std::uint64_t task, const auto& visit) {
    const std::uint64_t part = task % parts;
    return visit(static_cast<std::uint32_t>(task / parts),
                 static_cast<std::uint32_t>(columns * part / parts),
                 static_cast<std::uint32_t>(columns * (part + 1) / parts));
  };
  walk_tasks(
      tools, walkers, rows * parts,
      [&](std::uint64_t task) {
        return with_tiles(task, [&](auto... tiles) { return work.of(tiles...); });
      },
      [&](TileWalker<Sink>& walker, std::uint64_t task) {
        with_tiles(task, [&](auto... tiles) { walker.walk(tiles...); });
      });
  for (auto& walker : walkers) finish(walker.sink);
}

/// The same for the plan's output, into the queue of batches. Returns the total where that is the
/// output.
std::uint64_t walk_tiles(const TilePlan& plan, const WalkTools& tools);

}  // namespace gpujoin::cpu
