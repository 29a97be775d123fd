#include "cpu/walk/tile_walker.h"

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

void count_rows(const TilePlan& plan, const WalkTools& tools) {
  const JoinPlan& join = *plan.join;
  Buffer<std::uint64_t> counts(tools.budget, join.left->rows.size());
  std::fill(counts.begin(), counts.end(), 0);
  walk_tiles(plan, tools, [&](WalkProgress&) {
    return SharedCountSink(counts.data(), join.left->ids.data(), plan.half(), join.pairs);
  });
  WalkProgress progress(tools.tally);
  BatchWriter writer(tools.queue, progress, join.batch_entries);
  for (std::uint64_t position = 0; position < counts.size(); ++position)
    writer.add_count(static_cast<std::uint32_t>(position), counts[position]);
  writer.flush();
}

}  // namespace

std::uint64_t candidates_of_groups(const TilePlan& plan, std::uint32_t row_group,
                                   std::uint32_t column_group) {
  const std::uint64_t rows = plan.left->group_size(row_group);
  const std::uint64_t columns = plan.right->group_size(column_group);
  if (!plan.half() || row_group != column_group) return rows * columns;
  return rows * (rows - 1) / 2 + (plan.join->pairs == PairSelection::kAll ? rows : 0);
}

bool screen_groups(const TilePlan& plan, std::uint32_t row_group, std::uint32_t column_group,
                   GroupPairs* pairs) {
  if (!plan.screen(plan.looks, plan.left->group(row_group), plan.right->group(column_group), pairs))
    return false;
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
    for_bits(pairs->possible[i] & ~pairs->sure[i], [&](std::uint32_t j) {
      ++decided;
      const double raw =
          plan.join->exact_raw(row_group * kGroupPoints + i, column_group * kGroupPoints + j);
      if (!(raw <= threshold)) pairs->possible[i] &= ~(1u << j);
    });
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
  else
    walk_into_batches(join, tools, walk);
  return total;
}

}  // namespace gpujoin::cpu
