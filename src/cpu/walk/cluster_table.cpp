#include "cpu/walk/cluster_table.h"

#include <algorithm>
#include <atomic>

#include "core/ordered_bits.h"
#include "cpu/index/large_buffer.h"
#include "cpu/index/parallel_sort.h"
#include "cpu/walk/batch_writer.h"

namespace gpujoin::cpu {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// Runs task(position) for all positions, on all workers.
template <class Task>
void for_positions(const WalkTools& tools, std::uint64_t positions, const Task& task) {
  const std::uint64_t stretch = 1 << 14;
  tools.pool.parallel_for((positions + stretch - 1) / stretch, [&](std::size_t item, unsigned) {
    const std::uint64_t end = std::min(positions, (item + 1) * stretch);
    for (std::uint64_t at = item * stretch; at < end; ++at) task(static_cast<std::uint32_t>(at));
  });
}

/// Whether a point comes before another one by id, and of equal ids by its row.
bool comes_first(const GridIndex& index, std::uint32_t a, std::uint32_t b) {
  return index.ids[a] != index.ids[b] ? index.ids[a] < index.ids[b] : index.rows[a] < index.rows[b];
}

/// Makes `first` the point, if that comes first.
void take_first(const GridIndex& index, std::uint32_t& first, std::uint32_t point) {
  std::atomic_ref place(first);
  std::uint32_t known = place.load(kRelaxed);
  while ((known == kNone || comes_first(index, point, known)) &&
         !place.compare_exchange_weak(known, point, kRelaxed)) {
  }
}

/// first[root] of each cluster becomes the cluster's number.
void number_clusters(const WalkTools& tools, const GridIndex& index, Buffer<std::uint32_t>& first) {
  const auto clusters =
      first.size() - static_cast<std::uint64_t>(std::count(first.begin(), first.end(), kNone));
  Buffer<SortItem> order(tools.budget, clusters);
  std::uint64_t at = 0;
  for (std::uint64_t root = 0; root < first.size(); ++root) {
    if (first[root] == kNone) continue;
    order[at++] = {.lo = std::uint64_t{index.rows[first[root]]} << 32 | root,
                   .hi = static_cast<std::uint64_t>(index.ids[first[root]]) ^ kSignBit};
  }
  parallel_sort(tools.pool, tools.budget, order);
  for (std::uint64_t number = 0; number < clusters; ++number)
    first[order[number].lo & kNone] = static_cast<std::uint32_t>(number);
}

}  // namespace

ClusterTable::ClusterTable(MemoryBudget& budget, std::uint64_t points)
    : links_(large_buffer<std::uint32_t>(budget, points)),
      sets_(links_.data()),
      cores_(budget, points) {
  for (std::uint64_t point = 0; point < points; ++point)
    links_[point] = static_cast<std::uint32_t>(point);
  std::fill(cores_.begin(), cores_.end(), false);
}

void ClusterTable::write(const JoinPlan& plan, const WalkTools& tools) {
  const GridIndex& index = *plan.left;
  const std::uint64_t rows = index.rows.size();
  Buffer<std::uint32_t> first = large_buffer<std::uint32_t>(tools.budget, rows);
  std::fill(first.begin(), first.end(), kNone);
  for_positions(tools, rows, [&](std::uint32_t point) {
    if (role_of(point) != ClusterRole::kNoise) take_first(index, first[root(point)], point);
  });
  number_clusters(tools, index, first);
  WalkProgress progress(tools.tally);
  BatchWriter writer(tools.queue, progress, plan.batch_entries);
  for (std::uint32_t point = 0; point < rows; ++point) {
    const ClusterRole role = role_of(point);
    const std::uint64_t cluster = role == ClusterRole::kNoise ? 0 : first[root(point)];
    writer.add_number(point, pack_cluster({role, cluster}));
  }
  writer.flush();
}

}  // namespace gpujoin::cpu
