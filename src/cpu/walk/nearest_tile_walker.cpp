#include "cpu/walk/nearest_tile_walker.h"

#include <algorithm>
#include <cmath>

#include "core/nearest_screen.h"
#include "core/several_distances.h"
#include "cpu/walk/neighbor_order.h"

namespace gpujoin::cpu {
namespace {

template <class T>
void find_raws(const NearestTilePlan& plan, std::uint32_t left, const Neighbor* rights,
               std::uint64_t count, double* raws) {
  const T* const a = point<T>(*plan.left_points, plan.left->rows[left]);
  const auto neighbor = [&](std::size_t i) {
    return point<T>(*plan.right_points, plan.right->rows[rights[i].position]);
  };
  raw_distances(plan.metric, a, count, neighbor, plan.frame->dims, raws);
}

/// The raw distances of a left point and some right ones, by the definition.
void find_raws(const NearestTilePlan& plan, std::uint32_t left, const Neighbor* rights,
               std::uint64_t count, double* raws) {
  if (plan.left_points->scalar == ScalarType::kFloat32)
    find_raws<float>(plan, left, rights, count, raws);
  else
    find_raws<double>(plan, left, rights, count, raws);
}

}  // namespace

NearestTileWalker::NearestTileWalker(const NearestTilePlan& plan, MemoryBudget& budget,
                                     const WorkerPool& pool, BatchWriter writer,
                                     WalkProgress& progress)
    : plan_(plan),
      pool_(pool),
      writer_(writer),
      progress_(progress),
      most_(std::min<std::uint64_t>(plan.k, plan.right->points)),
      scan_(choose_row_scan(plan.left_indexed->scalar)),
      selected_(budget, kTilePlaces * NearestList::room_for(most_)),
      thresholds_(budget, std::size_t{kTilePlaces} * (plan.frame->checkpoints.count + 1)),
      decided_(budget, NearestList::room_for(most_)),
      neighbors_(budget, NearestList::room_for(most_)) {
  for (std::uint32_t place = 0; place < kTilePlaces; ++place)
    lists_.emplace_back(selected_.data() + place * NearestList::room_for(most_), most_);
  visits_.reserve(plan.right->tiles());
}

void NearestTileWalker::walk(std::uint32_t tile) {
  search(tile, 0, 1);
  write_all();
}

void NearestTileWalker::search(std::uint32_t tile, std::uint32_t share, std::uint32_t shares) {
  progress_.begin();
  start(tile);
  order_visits();
  for (std::size_t at = share; at < visits_.size(); at += shares) {
    if (visits_[at].gap > most_reach()) break;
    look_at(visits_[at].tile);
  }
  progress_.report();
}

void NearestTileWalker::absorb(NearestTileWalker& other) {
  for (std::uint32_t place = 0; place < places_; ++place) {
    NearestList& from = other.lists_[place];
    for (std::uint64_t i = 0; i < from.size(); ++i) add(place, from.begin()[i]);
  }
}

void NearestTileWalker::write_all() {
  progress_.begin();
  for (std::uint32_t place = 0; place < places_; ++place) write(place);
  progress_.report();
  writer_.serve_caller();
}

void NearestTileWalker::start(std::uint32_t tile) {
  tile_ = tile;
  places_ = std::min(kTilePlaces, plan_.left->points - tile * kTilePlaces);
  std::fill(thresholds_.begin(), thresholds_.end(), HUGE_VALF);
  std::fill(std::begin(reach_), std::end(reach_), 0.0);
  const NearestBound first = plan_.bounds.first();
  for (std::uint32_t place = 0; place < places_; ++place) {
    lists_[place].clear();
    set_bound(place, first);
  }
}

/// Balls hold their points but for the rounding of centers and radii.
void NearestTileWalker::order_visits() {
  constexpr double kSlack = 0x1p-30;
  const NearestTiles &left = *plan_.left, &right = *plan_.right;
  const double* const center = left.centers.data() + std::size_t{tile_} * left.columns;
  visits_.clear();
  for (std::uint32_t tile = 0; tile < right.tiles(); ++tile) {
    const double* const other = right.centers.data() + std::size_t{tile} * right.columns;
    double squares = 0;
    for (std::uint32_t c = 0; c < right.columns; ++c)
      squares += (center[c] - other[c]) * (center[c] - other[c]);
    const double distance = std::sqrt(squares);
    const double balls = left.radii[tile_] + right.radii[tile];
    const double gap = distance * (1 - kSlack) - balls * (1 + kSlack);
    visits_.push_back({std::max(0.0, gap), distance, tile});
  }
  std::sort(visits_.begin(), visits_.end(), [](const Visit& a, const Visit& b) {
    return a.gap != b.gap ? a.gap < b.gap : a.distance < b.distance;
  });
}

double NearestTileWalker::most_reach() const { return *std::max_element(reach_, reach_ + places_); }

void NearestTileWalker::look_at(std::uint32_t tile) {
  const NearestTiles& right = *plan_.right;
  const std::uint32_t first = tile * NearestTiles::kTileGroups;
  const std::uint32_t end = std::min(right.groups(), first + NearestTiles::kTileGroups);
  const std::uint32_t row_groups = (places_ + kGroupPoints - 1) / kGroupPoints;
  // A group of columns stays in the cache while all rows pass it.
  for (std::uint32_t group = first; group < end; ++group) {
    pool_.throw_if_stopped();
    for (std::uint32_t row_group = 0; row_group < row_groups; ++row_group) screen(row_group, group);
    progress_.candidates += std::uint64_t{places_} * right.group_size(group);
  }
}

void NearestTileWalker::screen(std::uint32_t row_group, std::uint32_t group) {
  if (plan_.right_bytes != nullptr) return screen_bytes(group);
  const std::size_t stride = std::size_t{plan_.frame->checkpoints.count + 1} * kGroupPoints;
  PackedGroup rows = plan_.left->group(std::size_t{tile_} * NearestTiles::kTileGroups + row_group);
  rows.thresholds = thresholds_.data() + row_group * stride;
  GroupPairs pairs;
  if (!plan_.screen(plan_.frame->checkpoints, rows, plan_.right->group(group), &pairs)) return;
  for (std::uint32_t i = 0; i < kGroupPoints; ++i)
    if (pairs.possible[i] != 0) select(row_group * kGroupPoints + i, group, pairs.possible[i]);
}

/// Screens the one left point.
void NearestTileWalker::screen_bytes(std::uint32_t group) {
  const BytePoint& left = *plan_.left_point;
  const ByteTiles& right = *plan_.right_bytes;
  const ByteThreshold threshold =
      byte_threshold(left.step, left.norm, right.steps[group],
                     radius_ + left.error + right.errors[group], right.columns);
  std::uint32_t possible = plan_.byte_screen(left.values.data(), right.group(group),
                                             right.norms.data() + std::size_t{group} * kGroupPoints,
                                             right.columns, threshold);
  const std::uint32_t size = plan_.right->group_size(group);
  if (size < kGroupPoints) possible &= (1u << size) - 1;
  if (possible != 0) select(0, group, possible);
}

/// Takes the points of a right group that the screen lets pass and that the sums do, too.
void NearestTileWalker::select(std::uint32_t place, std::uint32_t group, std::uint32_t possible) {
  const NearestTiles &left = *plan_.left, &right = *plan_.right;
  const std::uint32_t position = tile_ * kTilePlaces + place;
  std::uint32_t positions[kGroupPoints], count = 0;
  const void* rows[kGroupPoints];
  for_bits(possible, [&](std::uint32_t j) {
    const std::uint32_t other = group * kGroupPoints + j;
    if (plan_.without_itself && other == position) return;
    positions[count] = other;
    rows[count++] = point(*plan_.right_indexed, right.rows[other]);
  });
  double sums[kGroupPoints];
  scan_.squares(point(*plan_.left_indexed, left.rows[position]), rows, count, plan_.frame->dims,
                sums);
  bool narrows = false;
  for (std::uint32_t i = 0; i < count; ++i) narrows |= add(place, {sums[i], positions[i]});
  if (narrows) set_bound(place, plan_.bounds.of_sum(lists_[place].bound()));
}

/// Returns whether it is time to take the bound.
bool NearestTileWalker::add(std::uint32_t place, Neighbor found) {
  if (found.raw > near_[place]) return false;
  NearestList& list = lists_[place];
  if (list.is_full()) make_room(place);
  return list.add(found);
}

void NearestTileWalker::set_bound(std::uint32_t place, NearestBound bound) {
  const NearestTiles& left = *plan_.left;
  const std::uint32_t group = place / kGroupPoints, checkpoints = plan_.frame->checkpoints.count;
  const std::size_t row_group = std::size_t{tile_} * NearestTiles::kTileGroups + group;
  near_[place] = bound.near;
  lists_[place].drop_beyond(bound.near);
  const double error =
      static_cast<double>(left.errors[row_group * kGroupPoints + place % kGroupPoints]);
  if (place == 0) radius_ = bound.reach;
  reach_[place] = bound.reach + error + static_cast<double>(plan_.right->most_error);
  const float* norms =
      left.norms.data() + row_group * checkpoints * kGroupPoints + place % kGroupPoints;
  float* threshold = thresholds_.data() + group * std::size_t{checkpoints + 1} * kGroupPoints +
                     place % kGroupPoints;
  for (std::uint32_t checkpoint = 0; checkpoint < checkpoints; ++checkpoint) {
    *threshold =
        nearest_left_threshold(static_cast<double>(*norms), reach_[place],
                               single_accumulation(plan_.frame->checkpoints.end[checkpoint]));
    norms += kGroupPoints;
    threshold += kGroupPoints;
  }
}

/// Room for one more. Where too many lie within the bound, for they are equally far away, their ids
/// decide.
void NearestTileWalker::make_room(std::uint32_t place) {
  NearestList& list = lists_[place];
  if (list.size() >= most_) set_bound(place, plan_.bounds.of_sum(list.bound()));
  if (!list.is_full()) return;
  const std::uint64_t size = std::min(decide(place), most_);
  const std::int64_t* const ids = plan_.right->ids.data();
  std::sort(decided_.begin(), decided_.begin() + list.size(),
            [&](const Decided& a, const Decided& b) {
              return plan_.metric == Metric::kL2
                         ? comes_before<Metric::kL2>(a.neighbor, b.neighbor, ids)
                         : comes_before<Metric::kCosine>(a.neighbor, b.neighbor, ids);
            });
  for (std::uint64_t i = 0; i < size; ++i)
    list.begin()[i] = {decided_[i].sum, decided_[i].neighbor.position};
  list.keep(size);
  if (size == most_) set_bound(place, plan_.bounds.of_raw(decided_[most_ - 1].neighbor.raw));
}

/// The raw distances of what is in a list, by the definition. Returns how many are wanted; the
/// others have an infinite one.
std::uint64_t NearestTileWalker::decide(std::uint32_t place) {
  constexpr std::uint64_t kAtOnce = 64;
  NearestList& list = lists_[place];
  double raws[kAtOnce];
  std::uint64_t wanted = 0;
  for (std::uint64_t first = 0; first < list.size(); first += kAtOnce) {
    const std::uint64_t count = std::min(kAtOnce, list.size() - first);
    find_raws(plan_, tile_ * kTilePlaces + place, list.begin() + first, count, raws);
    for (std::uint64_t i = 0; i < count; ++i) {
      const bool is_wanted = raws[i] <= plan_.most_raw;
      const Neighbor& selected = list.begin()[first + i];
      decided_[first + i] = {{is_wanted ? raws[i] : HUGE_VAL, selected.position}, selected.raw};
      wanted += is_wanted;
    }
  }
  progress_.rechecked += list.size();
  return wanted;
}

void NearestTileWalker::write(std::uint32_t place) {
  NearestList& list = lists_[place];
  if (list.size() > most_) set_bound(place, plan_.bounds.of_sum(list.bound()));
  const std::uint64_t size = std::min(decide(place), most_);
  if (size == 0) return;
  for (std::uint64_t i = 0; i < list.size(); ++i) neighbors_[i] = decided_[i].neighbor;
  sort_neighbors(plan_.metric, neighbors_.data(), list.size(), plan_.right->ids.data());
  BatchBuffer& batch = writer_.make_room(size);
  for (std::uint64_t i = 0; i < size; ++i) {
    batch.neighbors[batch.entry_count + i] = neighbors_[i].position;
    batch.distances[batch.entry_count + i] = distance_from_raw(plan_.metric, neighbors_[i].raw);
  }
  writer_.add_row(batch, tile_ * kTilePlaces + place, size, size);
}

}  // namespace gpujoin::cpu
