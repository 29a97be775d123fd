#include "cpu/tile_walker.h"

#include <algorithm>
#include <atomic>
#include <bit>

namespace gpujoin::cpu {
namespace {

/// Calls visit(bit) for the bits that are set.
template <class Visit>
void for_bits(std::uint32_t bits, const Visit& visit) {
  for (; bits != 0; bits &= bits - 1) visit(static_cast<std::uint32_t>(std::countr_zero(bits)));
}

void add_to(std::uint64_t& count, std::uint64_t pairs) {
  if (pairs > 0) std::atomic_ref(count).fetch_add(pairs, std::memory_order_relaxed);
}

}  // namespace

TileWalker::TileWalker(const TilePlan& plan, MemoryBudget& budget, WorkerPool& pool,
                       BatchQueue& queue, WalkTally& tally)
    : writer(queue, tally, plan.join->batch_entries),
      plan_(plan),
      pool_(pool),
      found_(budget, kTileGroups * kStretch) {}

void TileWalker::walk(std::uint32_t tile, std::uint32_t first, std::uint32_t end) {
  writer.begin();
  if (takes_half()) first = std::max(first, tile);
  const Boxes& left = plan_.left->tile_boxes;
  const Boxes& right = plan_.right->tile_boxes;
  std::uint32_t gathered = 0;
  for (std::uint32_t column_tile = first; column_tile < end; ++column_tile) {
    if (!may_meet(left.columns, left.at(tile), right.at(column_tile), plan_.reach)) continue;
    screen_tile(tile, column_tile);
    gathered += kTileGroups;
    if (gathered < kStretch) continue;
    emit_stretch(tile);
    writer.end();
    gathered = 0;
  }
  emit_stretch(tile);
  writer.end();
}

void TileWalker::screen_tile(std::uint32_t tile, std::uint32_t column_tile) {
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
      if (takes_half() && column < row) break;
      if (may_meet(left.columns, left.at(row), right.at(column), plan_.reach))
        screen_groups(row, column);
    }
  }
}

void TileWalker::screen_groups(std::uint32_t row_group, std::uint32_t column_group) {
  const JoinPlan& join = *plan_.join;
  const bool diagonal = takes_half() && row_group == column_group;
  const std::uint64_t rows = plan_.left->group_size(row_group);
  const std::uint64_t columns = plan_.right->group_size(column_group);
  writer.candidates += !diagonal
                           ? rows * columns
                           : rows * (rows - 1) / 2 + (join.pairs == PairSelection::kAll ? rows : 0);

  const std::uint32_t list = row_group % kTileGroups;
  GroupPairs& pairs = found_[list * kStretch + found_count_[list]];
  if (!plan_.screen(plan_.looks, plan_.left->group(row_group), plan_.right->group(column_group),
                    &pairs))
    return;
  if (diagonal) leave_upper_half(pairs);
  if (!takes_half() && join.self_join() && row_group == column_group) leave_out_itself(pairs);
  if (!wants_distances(join.output)) settle(row_group, column_group, pairs);
  if (join.output == Output::kTotal) {
    add_total(row_group, column_group, pairs);
  } else if (join.output == Output::kCountPerRow) {
    add_counts(row_group, column_group, pairs);
  } else {
    found_groups_[list][found_count_[list]++] = column_group;
  }
}

/// A group against itself: each pair is wanted once, a self-pair only where all pairs are. A
/// self-pair is within any radius, but for the rounding of its cosine.
void TileWalker::leave_upper_half(GroupPairs& pairs) const {
  for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
    const std::uint32_t above = ~std::uint32_t{1} << i;
    const std::uint32_t itself =
        plan_.join->pairs == PairSelection::kAll ? pairs.possible[i] & 1u << i : 0;
    pairs.possible[i] = (pairs.possible[i] & above) | itself;
    pairs.sure[i] = (pairs.sure[i] & above) |
                    (plan_.join->metric == Metric::kCosine ? pairs.sure[i] & itself : itself);
  }
}

/// A group against itself, where a pair counts with either of its points.
void TileWalker::leave_out_itself(GroupPairs& pairs) const {
  if (plan_.join->pairs == PairSelection::kAll) return;
  for (std::uint32_t i = 0; i < kGroupPoints; ++i) pairs.possible[i] &= ~(1u << i);
}

/// Takes away the possible pairs that by the definition are not within eps.
void TileWalker::settle(std::uint32_t row_group, std::uint32_t column_group, GroupPairs& pairs) {
  const double threshold = plan_.join->threshold.raw;
  for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
    for_bits(pairs.possible[i] & ~pairs.sure[i], [&](std::uint32_t j) {
      ++writer.rechecked;
      const double raw = exact(row_group * kGroupPoints + i, column_group * kGroupPoints + j);
      if (!(raw <= threshold)) pairs.possible[i] &= ~(1u << j);
    });
  }
}

void TileWalker::add_total(std::uint32_t row_group, std::uint32_t column_group,
                           const GroupPairs& pairs) {
  std::uint64_t found = 0, itself = 0;
  for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
    found += static_cast<std::uint64_t>(std::popcount(pairs.possible[i]));
    itself += pairs.possible[i] >> i & 1;
  }
  if (row_group != column_group) itself = 0;
  writer.pairs += plan_.join->mirrored() ? 2 * found - itself : found;
}

void TileWalker::add_counts(std::uint32_t row_group, std::uint32_t column_group,
                            const GroupPairs& pairs) {
  const JoinPlan& join = *plan_.join;
  const std::int64_t* const ids = join.left->ids.data();
  const std::uint32_t first_row = row_group * kGroupPoints;
  const std::uint32_t first_column = column_group * kGroupPoints;
  std::uint32_t column_counts[kGroupPoints] = {};
  for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
    const std::uint32_t p = first_row + i;
    const std::uint32_t found = pairs.possible[i];
    std::uint64_t row_count = static_cast<std::uint64_t>(std::popcount(found));
    if (takes_half()) {
      for_bits(found, [&](std::uint32_t j) {
        const std::uint32_t q = first_column + j;
        // An unordered pair counts with the row of the smaller id.
        const bool second = join.pairs != PairSelection::kUnordered ? q != p : ids[q] < ids[p];
        column_counts[j] += second;
        if (join.pairs == PairSelection::kUnordered) row_count -= second;
      });
    }
    if (found != 0) add_to(plan_.counts[p], row_count);
  }
  for (std::uint32_t j = 0; j < kGroupPoints; ++j)
    if (column_counts[j] > 0) add_to(plan_.counts[first_column + j], column_counts[j]);
}

/// Lists the gathered pairs, row by row.
void TileWalker::emit_stretch(std::uint32_t tile) {
  for (std::uint32_t list = 0; list < kTileGroups; ++list) {
    const std::uint32_t count = found_count_[list];
    const std::uint32_t first_row = (tile * kTileGroups + list) * kGroupPoints;
    for (std::uint32_t i = 0; i < kGroupPoints && count > 0; ++i) {
      for (std::uint32_t at = 0; at < count; ++at) {
        const GroupPairs& pairs = found_[list * kStretch + at];
        if (pairs.possible[i] != 0)
          emit_row(first_row + i, found_groups_[list][at], pairs.possible[i], pairs.sure[i]);
      }
    }
    found_count_[list] = 0;
  }
}

void TileWalker::emit_row(std::uint32_t position, std::uint32_t column_group,
                          std::uint32_t possible, std::uint32_t sure) {
  const bool wants_distance = wants_distances(plan_.join->output);
  std::uint32_t neighbors[kGroupPoints];
  double raws[kGroupPoints];
  std::uint32_t count = 0;
  for_bits(possible, [&](std::uint32_t j) {
    neighbors[count] = column_group * kGroupPoints + j;
    if (wants_distance) {
      const bool certain = sure >> j & 1;
      writer.rechecked += !certain;
      raws[count] = exact(position, neighbors[count]);
      if (!certain && !(raws[count] <= plan_.join->threshold.raw)) return;
    }
    ++count;
  });
  const auto most =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(kGroupPoints, plan_.join->batch_entries));
  for (std::uint32_t at = 0; at < count; at += most)
    append(position, neighbors + at, raws + at, std::min(most, count - at));
}

/// Appends neighbours of a point, no more than fit in a batch.
void TileWalker::append(std::uint32_t position, const std::uint32_t* neighbors, const double* raws,
                        std::uint32_t count) {
  BatchBuffer& batch = writer.make_room(count);
  std::copy_n(neighbors, count, batch.neighbors.data() + batch.entry_count);
  if (batch.distances.size() > 0)
    for (std::uint32_t i = 0; i < count; ++i)
      batch.distances[batch.entry_count + i] = distance_from_raw(plan_.join->metric, raws[i]);
  std::uint64_t orders = count;
  if (plan_.join->mirrored())
    orders =
        2 * orders - static_cast<std::uint64_t>(std::count(neighbors, neighbors + count, position));
  writer.add_row(batch, position, count, orders);
}

double TileWalker::exact(std::uint32_t position, std::uint32_t neighbor) const {
  return plan_.join->exact_raw(position, neighbor);
}

}  // namespace gpujoin::cpu
