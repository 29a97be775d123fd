#include "cpu/walk/nearest_walker.h"

#include <algorithm>
#include <cmath>
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
  if (plan.lanes.search == nullptr) return;
  const std::size_t lanes = plan.lanes.lanes;
  lane_queries_ = Buffer<double>(budget, plan.right->dims * lanes);
  lane_found_ = Buffer<double>(budget, (plan.k + 1) * lanes);
  lane_passed_ = Buffer<double>(budget, LaneSearch::kPassedRoom * lanes);
  lane_visits_.resize(plan.right->levels + 1);
  lanes_ = {.tree = plan.right,
            .k = static_cast<std::uint32_t>(plan.k),
            .most_raw = plan.most_raw,
            .queries = lane_queries_.data(),
            .own = LaneSearch::kNowhere,
            .found = lane_found_.data(),
            .passed = lane_passed_.data(),
            .visits = lane_visits_.data(),
            .candidates = 0};
}

void NearestWalker::walk(std::uint32_t begin, std::uint32_t end) {
  progress_.begin();
  if (plan_.lanes.search != nullptr) {
    for (std::uint32_t position = begin; position < end; position += plan_.lanes.lanes)
      find_together(position, std::min(end, position + plan_.lanes.lanes));
  } else {
    for (std::uint32_t position = begin; position < end; ++position) find(position, plan_.most_raw);
  }
  progress_.report();
  writer_.serve_caller();
}

/// As many points as there are lanes, or fewer: the last one takes the lanes that are left.
void NearestWalker::find_together(std::uint32_t begin, std::uint32_t end) {
  const std::uint32_t lanes = plan_.lanes.lanes;
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    load_query(std::min(begin + lane, end - 1));
    for (std::uint32_t d = 0; d < plan_.right->dims; ++d)
      lanes_.queries[d * lanes + lane] = query_[d];
  }
  if (plan_.without_itself) lanes_.own = begin;
  plan_.lanes.search(lanes_);
  progress_.candidates += std::exchange(lanes_.candidates, 0);
  for (std::uint32_t lane = 0; lane < end - begin; ++lane) write_lane(lane, begin + lane);
}

/// Where the first k are not sure to be the k nearest, they are a bound of the search for them.
void NearestWalker::write_lane(std::uint32_t lane, std::uint32_t position) {
  const auto key = [&](std::uint64_t rank) {
    return NeighborKey(lanes_.found[rank * plan_.lanes.lanes + lane]);
  };
  const NeighborKey last = key(plan_.k - 1), next = key(plan_.k);
  if (!next.is_none() && !next.surely_follows(last))
    return find(position, std::min(plan_.most_raw, most_raw_beside(plan_.metric, last.most_raw())));
  std::uint64_t size = 0;
  for (; size < plan_.k && !key(size).is_none(); ++size) {
    const std::uint32_t right = key(size).position();
    found_[size] = {raw_of_lane(lane, right), right};
  }
  sort_neighbors(plan_.metric, found_.data(), size, plan_.right->ids.data());
  while (size > 0 && !(found_[size - 1].raw <= plan_.most_raw)) --size;
  write_found(position, size);
}

double NearestWalker::raw_of_lane(std::uint32_t lane, std::uint32_t position) const {
  const KdTree& right = *plan_.right;
  const auto raw = [&]<Metric M, class T>(T) {
    const T* const column =
        tile_place(reinterpret_cast<const T*>(right.tiles.data()), position, right.dims);
    double sum = 0;
    for (std::uint32_t d = 0; d < right.dims; ++d)
      sum = add_coordinate<M>(sum, lanes_.queries[d * plan_.lanes.lanes + lane],
                              static_cast<double>(column[std::size_t{d} * kTilePoints]));
    return sum;
  };
  return by_indexed_metric(plan_.metric, [&]<Metric M>() {
    return right.scalar == ScalarType::kFloat32 ? raw.template operator()<M>(float{})
                                                : raw.template operator()<M>(double{});
  });
}

/// None beyond `most_raw` is looked for.
void NearestWalker::find(std::uint32_t position, double most_raw) {
  load_query(position);
  list_.clear();
  last_raw_ = HUGE_VAL;
  set_bound(most_raw);
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

/// Of points that are equally far away all but those of the least ids are left out, or many equal
/// points would be looked at for each of them.
bool NearestWalker::may_hold(const Visit& visit) const {
  return visit.raw <= most_tree_raw_ &&
         !(visit.raw >= last_raw_ && plan_.least_ids[visit.node] > last_id_);
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
    while (may_hold(visit) && visit.node < tree.leaves()) {
      const std::uint32_t child = 2 * visit.node;
      Visit near = {child, bound(child)}, far = {child + 1, bound(child + 1)};
      if (far.raw < near.raw ||
          (far.raw == near.raw && plan_.least_ids[far.node] < plan_.least_ids[near.node]))
        std::swap(near, far);
      if (may_hold(far)) visits_.push_back(far);
      visit = near;
    }
    if (may_hold(visit)) look_at(tree.leaf(visit.node - tree.leaves()));
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
  if (raw >= last_raw_ && plan_.right->ids[position] > last_id_) return;
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
  if (!list_.is_full()) return;
  const std::uint64_t first = sort_first();
  if (!plan_.directions) {
    const Neighbor& last = found_[first - 1];
    last_raw_ = last.raw;
    last_id_ = plan_.right->ids[last.position];
  }
  list_.keep(first);
}

/// Puts the first k in front, in their order. Returns their number.
std::uint64_t NearestWalker::sort_first() {
  sort_neighbors(plan_.metric, list_.begin(), list_.size(), plan_.right->ids.data());
  return std::min(list_.size(), most_);
}

void NearestWalker::write(std::uint32_t position) {
  if (list_.size() > most_) narrow();
  write_found(position, sort_first());
}

void NearestWalker::write_found(std::uint32_t position, std::uint64_t size) {
  if (size == 0) return;
  BatchBuffer& batch = writer_.make_room(size);
  for (std::uint64_t i = 0; i < size; ++i) {
    batch.neighbors[batch.entry_count + i] = found_[i].position;
    batch.distances[batch.entry_count + i] = distance_from_raw(plan_.metric, found_[i].raw);
  }
  writer_.add_row(batch, position, size, size);
}

}  // namespace gpujoin::cpu
