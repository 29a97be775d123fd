#include "cpu/walk/walker.h"

#include "cpu/walk/cluster_cells.h"
#include "cpu/walk/sum_sink.h"

namespace gpujoin::cpu {

WorkProfile profile_cells(const JoinPlan& plan) {
  PointWindows windows(plan);
  return WorkProfile(plan.left->points, [&](std::uint64_t position) {
    return windows.sample_work(static_cast<std::uint32_t>(position));
  });
}

std::uint64_t walk_cells(const JoinPlan& plan, const WalkTools& tools) {
  std::atomic<std::uint64_t> total{0};
  const auto walk = [&](const auto& make_sink) { walk_cells(plan, tools, make_sink); };
  const auto writer = [&](WalkProgress& progress) {
    return BatchWriter(tools.queue, progress, plan.batch_entries);
  };
  if (plan.output == Output::kTotal)
    walk([&](WalkProgress&) { return TotalSink(total, plan.mirrored()); });
  else if (plan.output == Output::kSums)
    sum_rows(plan, tools, walk);
  else if (plan.output == Output::kClusters)
    find_clusters(plan, tools);
  else if (plan.output != Output::kCountPerRow)
    walk_into_batches(plan, tools, walk);
  else if (plan.pairs == PairSelection::kUnordered)
    walk([&](WalkProgress& p) { return FirstRowCountSink(writer(p), plan.right->ids.data()); });
  else
    walk([&](WalkProgress& p) { return RowCountSink(writer(p)); });
  return total;
}

}  // namespace gpujoin::cpu
