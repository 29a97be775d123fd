#include "cpu/walk/tree_table.h"

#include <algorithm>
#include <bit>

#include "core/ordered_bits.h"
#include "cpu/index/large_buffer.h"

namespace gpujoin::cpu {
namespace {

/// Runs task(number) for all numbers, on all workers.
template <class Task>
void for_all(WorkerPool& pool, std::uint64_t numbers, const Task& task) {
  constexpr std::uint64_t kStretch = 1 << 13;
  pool.parallel_for((numbers + kStretch - 1) / kStretch, [&](std::size_t item, unsigned) {
    const std::uint64_t end = std::min(numbers, (item + 1) * kStretch);
    for (std::uint64_t at = item * kStretch; at < end; ++at) task(static_cast<std::uint32_t>(at));
  });
}

}  // namespace

TreeTable::TreeTable(const WalkTools& tools, const KdTree& tree)
    : tools_(tools),
      tree_(tree),
      cores_(large_buffer<double>(tools.budget, tree.points)),
      ranks_(large_buffer<std::uint32_t>(tools.budget, tree.rows.size())),
      by_rank_(large_buffer<std::uint32_t>(tools.budget, tree.rows.size())),
      ids_(large_buffer<std::int64_t>(tools.budget, tree.rows.size())),
      components_(large_buffer<std::uint32_t>(tools.budget, tree.points)),
      first_(large_buffer<TreeEdge>(tools.budget, tree.points)),
      facts_(tools.budget, std::size_t{2} * tree.leaves()),
      edges_(large_buffer<SortItem>(tools.budget, tree.points)) {
  const std::uint64_t rows = tree.rows.size();
  Buffer<SortItem> order = large_buffer<SortItem>(tools.budget, rows);
  for_all(tools.pool, rows, [&](std::uint32_t position) {
    order[position] = {.lo = std::uint64_t{tree.rows[position]} << 32 | position,
                       .hi = static_cast<std::uint64_t>(tree.ids[position]) ^ kSignBit};
  });
  parallel_sort(tools.pool, tools.budget, order);
  for_all(tools.pool, rows, [&](std::uint32_t rank) {
    const auto position = static_cast<std::uint32_t>(order[rank].lo);
    by_rank_[rank] = position;
    ranks_[position] = rank;
    ids_[rank] = tree.ids[position];
  });
  for (std::uint32_t point = 0; point < tree.points; ++point) components_[point] = point;
}

void TreeTable::begin_round() {
  for_all(tools_.pool, tree_.points, [this](std::uint32_t point) { first_[point] = kNoTreeEdge; });
  find_facts();
}

void TreeTable::find_facts() {
  for_all(tools_.pool, tree_.leaves(),
          [this](std::uint32_t leaf) { facts_[tree_.leaves() + leaf] = facts_of_leaf(leaf); });
  for (std::uint32_t node = tree_.leaves() - 1; node >= 1; --node)
    facts_[node] = together(facts_[2 * node], facts_[2 * node + 1]);
}

/// Points without a core distance do not count.
NodeFacts TreeTable::facts_of_leaf(std::uint32_t leaf) const {
  NodeFacts all = no_facts();
  const Window points = tree_.leaf(leaf);
  for (std::uint32_t point = points.begin; point < points.end; ++point)
    if (has_core(point)) all = together(all, {cores_[point], ranks_[point], components_[point]});
  return all;
}

TreeEdge TreeTable::first_edge(std::uint32_t component) {
  std::atomic_flag& lock = lock_of(component);
  while (lock.test_and_set(std::memory_order_acquire)) {
  }
  const TreeEdge edge = first_[component];
  lock.clear(std::memory_order_release);
  return edge;
}

void TreeTable::offer(std::uint32_t component, const TreeEdge& edge) {
  if (edge.distance > first_distance(component)) return;
  std::atomic_flag& lock = lock_of(component);
  while (lock.test_and_set(std::memory_order_acquire)) {
  }
  TreeEdge& first = first_[component];
  if (edge < first) {
    first.ends = edge.ends;
    std::atomic_ref(first.distance).store(edge.distance, std::memory_order_relaxed);
  }
  lock.clear(std::memory_order_release);
}

std::uint32_t TreeTable::root(std::uint32_t point) {
  while (components_[point] != point) {
    components_[point] = components_[components_[point]];
    point = components_[point];
  }
  return point;
}

/// Edges are in an order of their own, so the first ones close no circle, but for those that two
/// components have in common. Links lead to smaller positions, which one pass makes the roots.
bool TreeTable::end_round() {
  constexpr std::uint32_t kPointsBetweenLooks = 1 << 20;
  const std::uint64_t before = edge_count_;
  for (std::uint32_t component = 0; component < tree_.points; ++component) {
    if (component % kPointsBetweenLooks == 0) tools_.pool.throw_if_stopped();
    const TreeEdge& edge = first_[component];
    if (!(edge < kNoTreeEdge)) continue;
    const std::uint32_t a = root(by_rank_[edge.first()]), b = root(by_rank_[edge.second()]);
    if (a == b) continue;
    components_[std::max(a, b)] = std::min(a, b);
    edges_[edge_count_++] = {.lo = edge.ends, .hi = std::bit_cast<std::uint64_t>(edge.distance)};
  }
  for (std::uint32_t point = 0; point < tree_.points; ++point)
    components_[point] = components_[components_[point]];
  return edge_count_ > before;
}

/// The bits of distances, which are not negative, are in their order.
void TreeTable::sort_edges() {
  Buffer<SortItem> edges = large_buffer<SortItem>(tools_.budget, edge_count_);
  std::copy_n(edges_.begin(), edge_count_, edges.begin());
  edges_ = std::move(edges);
  parallel_sort(tools_.pool, tools_.budget, edges_);
}

TreeEdge TreeTable::edge(std::uint64_t number) const {
  return {std::bit_cast<double>(edges_[number].hi), edges_[number].lo};
}

}  // namespace gpujoin::cpu
