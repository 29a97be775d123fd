#include "cpu/walk/tile_walker.h"

#include "cpu/walk/cluster_tiles.h"
#include "cpu/walk/sum_sink.h"

namespace gpujoin::cpu {
namespace {

/// A group against itself: each pair is wanted once, a self-pair only where all pairs are. A
/// self-pair is within any radius, but for the rounding of its cosine.
void leave_upper_half(const JoinPlan& join, GroupPairs* pairs) {
  for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
    const std::uint32_t above = ~std::uint32_t{1} << i;
    const std::uint32_t itself =
        join.pairs == PairSelection::kAll ? pairs->possible[i] & 1u << i : 0;
    pairs->possible[i] = (pairs->possible[i] & above) | itself;
    pairs->sure[i] = (pairs->sure[i] & above) |
                     (join.metric == Metric::kCosine ? pairs->sure[i] & itself : itself);
  }
}

/// A group against itself, where a pair counts with either of its points.
void leave_out_itself(const JoinPlan& join, GroupPairs* pairs) {
  if (join.pairs == PairSelection::kAll) return;
  for (std::uint32_t i = 0; i < kGroupPoints; ++i) pairs->possible[i] &= ~(1u << i);
}

/// All pairs of two groups, surely.
void set_all(const TilePlan& plan, std::uint32_t row_group, std::uint32_t column_group,
             GroupPairs* pairs) {
  const std::uint32_t rows = plan.left->group_size(row_group);
  const std::uint32_t rights =
      ~std::uint32_t{0} >> (kGroupPoints - plan.right->group_size(column_group));
  for (std::uint32_t i = 0; i < kGroupPoints; ++i)
    pairs->possible[i] = pairs->sure[i] = i < rows ? rights : 0;
}

/// How many pairs a walk compares of two tiles.
std::uint64_t candidates_of_tiles(const TilePlan& plan, std::uint32_t row, std::uint32_t column) {
  const auto meet = [&](const Boxes& left, const Boxes& right, std::uint32_t i, std::uint32_t j) {
    return may_meet(left.columns, left.at(i), right.at(j), plan.reach);
  };
  std::uint64_t candidates = 0;
  if (!meet(plan.left->tile_boxes, plan.right->tile_boxes, row, column)) return candidates;
  for (std::uint32_t i = row * kTileGroups;
       i < std::min(plan.left->groups(), (row + 1) * kTileGroups); ++i)
    for (std::uint32_t j = column * kTileGroups;
         j < std::min(plan.right->groups(), (column + 1) * kTileGroups); ++j)
      if ((!plan.half() || i <= j) && meet(plan.left->group_boxes, plan.right->group_boxes, i, j))
        candidates += candidates_of_groups(plan, i, j);
  return candidates;
}

void count_rows(const TilePlan& plan, const WalkTools& tools) {
  const JoinPlan& join = *plan.join;
  Buffer<std::uint64_t> counts(tools.budget, join.left->rows.size());
  std::fill(counts.begin(), counts.end(), 0);
  walk_tiles(plan, tools, [&](WalkProgress&) { return SharedCountSink(counts.data(), join); });
  WalkProgress progress(tools.tally);
  BatchWriter writer(tools.queue, progress, join.batch_entries);
  for (std::uint64_t position = 0; position < counts.size(); ++position)
    writer.add_count(static_cast<std::uint32_t>(position), counts[position]);
  writer.flush();
}

}  // namespace

/// A tile costs a look at each right one, and the candidates of groups whose boxes come near each
/// other: some of the right tiles tell for all. Half a walk leaves out those before it.
TileWork::TileWork(const TilePlan& plan)
    : plan_(plan), profile_(plan.left->tiles(), [&](std::uint64_t tile) {
        constexpr std::uint32_t kMostSamples = 256, kSampleWork = 32;
        const std::uint32_t end = plan.right->tiles();
        const std::uint32_t first = plan.half() ? static_cast<std::uint32_t>(tile) : 0;
        const std::uint32_t step = std::max(1u, (end - first) / kMostSamples);
        std::uint64_t samples = 0, work = 0;
        for (std::uint32_t column = first; column < end; column += step, ++samples)
          work += kSampleWork + candidates_of_tiles(plan, static_cast<std::uint32_t>(tile), column);
        return (end - first) * work / std::max<std::uint64_t>(samples, 1);
      }) {}

std::uint64_t TileWork::of(std::uint32_t tile, std::uint32_t first, std::uint32_t end) const {
  const std::uint32_t all = plan_.right->tiles(), from = plan_.half() ? tile : 0;
  first = std::max(first, from);
  if (end <= first) return 0;
  return profile_.of(tile, tile + 1) * (end - first) / (all - from);
}

std::uint64_t candidates_of_groups(const TilePlan& plan, std::uint32_t row_group,
                                   std::uint32_t column_group) {
  if (plan.bits != nullptr &&
      are_keys_apart(plan.join->keys, *plan.bits->left, row_group, *plan.bits->right, column_group))
    return 0;
  const std::uint64_t rows = plan.left->group_size(row_group);
  const std::uint64_t columns = plan.right->group_size(column_group);
  if (!plan.half() || row_group != column_group) return rows * columns;
  return rows * (rows - 1) / 2 + (plan.join->pairs == PairSelection::kAll ? rows : 0);
}

bool screen_groups(const TilePlan& plan, std::uint32_t row_group, std::uint32_t column_group,
                   GroupPairs* pairs) {
  const Boxes &left = plan.left->group_boxes, &right = plan.right->group_boxes;
  if (plan.bits != nullptr) {
    if (!screen_bit_groups(*plan.join, *plan.bits, row_group, column_group, pairs)) return false;
  } else if (surely_match(left.columns, left.at(row_group), right.at(column_group), plan.accept)) {
    set_all(plan, row_group, column_group, pairs);
  } else if (!plan.screen(plan.checkpoints, plan.left->group(row_group),
                          plan.right->group(column_group), pairs)) {
    return false;
  }
  if (!plan.join->self_join() || row_group != column_group) return true;
  if (plan.half())
    leave_upper_half(*plan.join, pairs);
  else
    leave_out_itself(*plan.join, pairs);
  return true;
}

std::uint64_t settle_groups(const TilePlan& plan, std::uint32_t row_group,
                            std::uint32_t column_group, GroupPairs* pairs) {
  const double threshold = plan.join->threshold.raw;
  std::uint64_t decided = 0;
  for (std::uint32_t i = 0; i < kGroupPoints; ++i) {
    const std::uint32_t open = pairs->possible[i] & ~pairs->sure[i];
    if (open == 0) continue;
    std::uint32_t rights[kGroupPoints], count = 0;
    double raws[kGroupPoints];
    for_bits(open, [&](std::uint32_t j) { rights[count++] = column_group * kGroupPoints + j; });
    plan.join->exact_raws(row_group * kGroupPoints + i, rights, count, raws);
    for (std::uint32_t k = 0; k < count; ++k)
      if (!(raws[k] <= threshold)) pairs->possible[i] &= ~(1u << rights[k] % kGroupPoints);
    decided += count;
  }
  return decided;
}

std::uint64_t walk_tiles(const TilePlan& plan, const WalkTools& tools) {
  const JoinPlan& join = *plan.join;
  std::atomic<std::uint64_t> total{0};
  const auto walk = [&](const auto& make_sink) { walk_tiles(plan, tools, make_sink); };
  if (join.output == Output::kTotal)
    walk([&](WalkProgress&) { return TotalSink(total, join.mirrored()); });
  else if (join.output == Output::kCountPerRow)
    count_rows(plan, tools);
  else if (join.output == Output::kSums)
    sum_rows(join, tools, walk);
  else if (join.output == Output::kClusters)
    find_clusters(plan, tools);
  else
    walk_into_batches(join, tools, walk);
  return total;
}

}  // namespace gpujoin::cpu
