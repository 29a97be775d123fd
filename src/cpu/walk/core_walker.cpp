#include "cpu/walk/core_walker.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace gpujoin::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr auto is_nearer = [](const Neighbor& a, const Neighbor& b) { return a.raw < b.raw; };

}  // namespace

CoreWalker::CoreWalker(const TreePoints& points, std::uint64_t neighbors, TreeTable& table,
                       NearLists& lists, const WalkTools& tools, WalkProgress& progress)
    : points_(points),
      neighbors_(neighbors),
      table_(table),
      lists_(lists),
      progress_(progress),
      scan_(points, tools),
      found_(tools.budget, std::min<std::uint64_t>(std::max<std::uint64_t>(neighbors, lists.length),
                                                   points.tree->points)) {
  visits_.reserve(points.tree->levels + 1);
}

void CoreWalker::walk(std::uint32_t begin, std::uint32_t end) {
  progress_.begin();
  for (std::uint32_t position = begin; position < end; ++position) find(position);
  progress_.report();
}

void CoreWalker::find(std::uint32_t position) {
  size_ = 0;
  if (found_.size() > 0) {
    scan_.load(position);
    scan_.set_bound(DBL_MAX);
    by_indexed_metric(points_.indexed_metric, [&]<Metric M>() { descend<M>(position); });
  }
  write(position);
}

/// Once all are found that are wanted, only nearer ones matter, and of many at one distance none
/// is looked for. Directions do not tell distances so well.
bool CoreWalker::may_hold(double tree_raw) const {
  if (!is_full() || points_.by_directions()) return tree_raw <= scan_.most_tree_raw();
  return tree_raw < found_[0].raw;
}

template <Metric M>
void CoreWalker::descend(std::uint32_t position) {
  const KdTree& tree = *points_.tree;
  visits_.assign(1, {1, 0});
  while (!visits_.empty()) {
    Visit visit = visits_.back();
    visits_.pop_back();
    while (may_hold(visit.raw) && visit.node < tree.leaves()) {
      const std::uint32_t child = 2 * visit.node;
      Visit near = {child, scan_.raw_of_node<M>(child)};
      Visit far = {child + 1, scan_.raw_of_node<M>(child + 1)};
      if (far.raw < near.raw) std::swap(near, far);
      if (may_hold(far.raw)) visits_.push_back(far);
      visit = near;
    }
    if (may_hold(visit.raw)) look_at(tree.leaf(visit.node - tree.leaves()), position);
  }
}

void CoreWalker::look_at(Window leaf, std::uint32_t position) {
  const std::size_t within = scan_.look_at(leaf);
  progress_.candidates += leaf.end - leaf.begin;
  const bool was_full = is_full();
  for (std::size_t i = 0; i < within; ++i) {
    const Neighbor other = {scan_.raw(i), scan_.position(i)};
    if (other.position == position) continue;
    if (is_full()) {
      if (other.raw >= found_[0].raw) continue;
      std::pop_heap(found_.begin(), found_.begin() + size_, is_nearer);
      --size_;
    }
    found_[size_++] = other;
    std::push_heap(found_.begin(), found_.begin() + size_, is_nearer);
  }
  if (is_full() && (!was_full || within > 0)) scan_.set_bound(found_[0].raw);
}

void CoreWalker::write(std::uint32_t position) {
  std::sort_heap(found_.begin(), found_.begin() + size_, is_nearer);
  const auto distance = [this](std::uint64_t i) {
    return i < size_ ? distance_from_raw(points_.metric, found_[i].raw) : kInfinity;
  };
  table_.set_core(position, neighbors_ == 0 ? 0 : distance(neighbors_ - 1));
  const std::uint64_t first = std::uint64_t{position} * lists_.length;
  for (std::uint32_t i = 0; i < lists_.length; ++i) {
    lists_.positions[first + i] = i < size_ ? found_[i].position : NearLists::kNone;
    lists_.distances[first + i] = distance(i);
  }
}

}  // namespace gpujoin::cpu
