#include "cpu/walk/nearest_walker.h"

#include <algorithm>
#include <utility>

#include "core/threshold.h"
#include "cpu/walk/neighbor_order.h"

namespace gpujoin::cpu {
namespace {

double distance_of_rows(const NearestPlan& plan, std::uint64_t left, std::uint64_t right) {
  const auto raw = [&]<class T>(T) {
    return raw_distance(plan.metric, point<T>(*plan.left_points, left),
                        point<T>(*plan.right_points, right), plan.left_points->dims);
  };
  return plan.left_points->scalar == ScalarType::kFloat32 ? raw(float{}) : raw(double{});
}

}  // namespace

NearestWalker::NearestWalker(const NearestPlan& plan, MemoryBudget& budget, BatchWriter writer,
                             WalkProgress& progress)
    : plan_(plan),
      writer_(writer),
      progress_(progress),
      most_(std::min<std::uint64_t>(plan.k, plan.right->points)),
      found_(budget, NearestList::room_for(most_)),
      list_(found_.data(), most_),
      query_(budget, plan.right->dims),
      positions_(budget, kMostLeafPoints + kCollectPadding),
      raws_(budget, kMostLeafPoints + kCollectPadding) {
  visits_.reserve(plan.right->levels + 1);
}

void NearestWalker::walk(std::uint32_t begin, std::uint32_t end) {
  progress_.begin();
  for (std::uint32_t position = begin; position < end; ++position) find(position);
  progress_.report();
  writer_.serve_caller();
}

void NearestWalker::find(std::uint32_t position) {
  load_query(position);
  list_.clear();
  set_bound(plan_.most_raw);
  by_indexed_metric(plan_.indexed_metric, [&]<Metric M>() { descend<M>(); });
  write(position);
}

void NearestWalker::load_query(std::uint32_t position) {
  constexpr std::uint32_t kAhead = 8;  // rows on their way to the cache
  const RowOrder& left = *plan_.left;
  const KdTree& right = *plan_.right;
  position_ = position;
  const std::uint64_t row = left.rows[position];
  if (position + kAhead < left.points)
    __builtin_prefetch(point(*plan_.left_indexed, left.rows[position + kAhead]));
  for (std::uint32_t d = 0; d < right.dims; ++d)
    query_[d] = coordinate(*plan_.left_indexed, row, d);
  scan_ = {right.tiles.data(), query_.data(), right.dims, 0, true};
}

template <Metric M>
void NearestWalker::descend() {
  const KdTree& tree = *plan_.right;
  const auto bound = [&](std::uint32_t node) {
    return raw_distance_of_box<M>(query_.data(), tree.low(node), tree.high(node), tree.dims);
  };
  visits_.assign(1, {1, 0});
  while (!visits_.empty()) {
    Visit visit = visits_.back();
    visits_.pop_back();
    while (visit.raw <= most_tree_raw_ && visit.node < tree.leaves()) {
      const std::uint32_t child = 2 * visit.node;
      Visit near = {child, bound(child)}, far = {child + 1, bound(child + 1)};
      if (far.raw < near.raw) std::swap(near, far);
      if (far.raw <= most_tree_raw_) visits_.push_back(far);
      visit = near;
    }
    if (visit.raw <= most_tree_raw_) look_at(tree.leaf(visit.node - tree.leaves()));
  }
}

void NearestWalker::look_at(Window leaf) {
  if (leaf.begin == leaf.end) return;
  const std::size_t passed = plan_.kernel.collect(scan_, &leaf, 1, positions_.data(), raws_.data());
  progress_.candidates += leaf.end - leaf.begin;
  for (std::size_t i = 0; i < passed; ++i) add(positions_[i], raws_[i]);
}

/// The definition decides: the raw distances of a screen, or of directions, only select.
void NearestWalker::add(std::uint32_t position, double raw) {
  if (plan_.without_itself && position == position_) return;
  if (plan_.screened || plan_.directions) {
    raw = distance_of_rows(plan_, plan_.left->rows[position_], plan_.right->rows[position]);
    ++progress_.rechecked;
  }
  if (!(raw <= most_raw_)) return;
  if (list_.is_full()) make_room();
  if (list_.add({raw, position})) narrow();
}

/// The k-th smallest raw distance so far is the bound that the search goes by.
void NearestWalker::narrow() {
  set_bound(std::min(plan_.most_raw, most_raw_beside(plan_.metric, list_.bound())));
  list_.drop_beyond(most_raw_);
}

void NearestWalker::set_bound(double raw) {
  most_raw_ = most_tree_raw_ = raw;
  if (plan_.directions)
    most_tree_raw_ = plan_.any_direction ? kAnyDirection * kAnyDirection
                                         : most_direction_raw(raw, plan_.right->dims);
  scan_.threshold =
      plan_.screened
          ? make_screen_bounds(plan_.indexed_metric, most_tree_raw_, plan_.right->dims).reject
          : most_tree_raw_;
}

/// Room for one more. Where too many lie within the bound, for they are equally far away, their ids
/// decide.
void NearestWalker::make_room() {
  if (list_.size() >= most_) narrow();
  if (list_.is_full()) list_.keep(sort_first());
}

/// Puts the first k in front, in their order. Returns their number.
std::uint64_t NearestWalker::sort_first() {
  sort_neighbors(plan_.metric, list_.begin(), list_.size(), plan_.right->ids.data());
  return std::min(list_.size(), most_);
}

void NearestWalker::write(std::uint32_t position) {
  if (list_.size() > most_) narrow();
  const std::uint64_t size = sort_first();
  if (size == 0) return;
  BatchBuffer& batch = writer_.make_room(size);
  for (std::uint64_t i = 0; i < size; ++i) {
    batch.neighbors[batch.entry_count + i] = list_.begin()[i].position;
    batch.distances[batch.entry_count + i] = distance_from_raw(plan_.metric, list_.begin()[i].raw);
  }
  writer_.add_row(batch, position, size, size);
}

}  // namespace gpujoin::cpu
