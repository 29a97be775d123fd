#include "cpu/walk/point_windows.h"

#include <algorithm>
#include <utility>

#include "core/cell_order.h"
#include "core/cell_walk.h"
#include "engine/strategy/choose_strategy.h"

namespace gpujoin::cpu {
namespace {

/// The first value from `begin` on that does not pass; where one does not, no later one does. A
/// branch for each value would be mispredicted about once a window.
template <class Passes>
std::uint32_t skip(const double* values, std::uint32_t begin, std::uint32_t end,
                   const Passes& passes) {
  constexpr std::uint32_t kAtOnce = 4;
  while (end - begin >= kAtOnce) {
    std::uint32_t passed = 0;
    for (std::uint32_t i = 0; i < kAtOnce; ++i) passed += passes(values[begin + i]) ? 1 : 0;
    begin += passed;
    if (passed < kAtOnce) return begin;
  }
  while (begin < end && passes(values[begin])) ++begin;
  return begin;
}

/// How many candidates of the plan take so long.
std::uint64_t candidates_in(const JoinPlan& plan, double ns) {
  const double dims = std::min(plan.left->dims, 4 * kMaxDirectDimensions);
  return static_cast<std::uint64_t>(ns /
                                    (kCoreWalkCosts.candidate + kCoreWalkCosts.dimension * dims));
}

}  // namespace

PointWindows::PointWindows(const JoinPlan& plan)
    : plan_(plan),
      window_work_(candidates_in(plan, kCoreWalkCosts.window)),
      cell_work_(candidates_in(
          plan, kCoreWalkCosts.lookup * neighbor_count(plan.layout->order.grid.dims))) {
  const std::uint32_t neighbors = neighbor_count(plan.layout->order.grid.dims);
  neighbors_.reserve(neighbors);
  cursors_.resize(neighbors);
}

void PointWindows::start(std::uint32_t first) {
  const Buffer<std::uint32_t>& starts = plan_.left->cell_starts;
  cell_ = std::upper_bound(starts.begin(), starts.end(), first) - starts.begin() - 1;
  started_ = true;
}

std::uint64_t PointWindows::sample_work(std::uint32_t position) {
  start(position);
  move_to(position);
  const std::uint64_t points = plan_.left->cell_starts[cell_ + 1] - plan_.left->cell_starts[cell_];
  return 1 + work() + cell_work_ / points;
}

/// Goes on to a point; whether its cell is another one than the last point's.
bool PointWindows::arrive(std::uint32_t position) {
  const bool next_cell = position == plan_.left->cell_starts[cell_ + 1];
  if (next_cell) ++cell_;
  const bool entered = std::exchange(started_, false) || next_cell;
  if (entered) enter_cell();
  return entered;
}

std::uint32_t PointWindows::move_to_block(std::uint32_t position, std::uint32_t end) {
  const bool entered = arrive(position);
  end = std::min({end, plan_.left->cell_starts[cell_ + 1],
                  position / kTilePoints * kTilePoints + kTilePoints});
  if (end - position > 1 && share_windows(position, end, entered)) return end - position;
  find_windows(position, entered);
  return 1;
}

/// Lists the non-empty cells on the right that hold candidates of a left cell's points.
void PointWindows::enter_cell() {
  const GridGeometry& grid = plan_.layout->order.grid;
  const GridIndex& left = *plan_.left;
  const GridIndex& right = *plan_.right;
  std::uint32_t here[kMaxGridDimensions];
  cell_of_row(grid, *plan_.left_indexed, left.distances, left.rows[left.cell_starts[cell_]], here);
  const std::uint32_t numbers = neighbor_count(grid.dims);
  neighbors_.clear();
  if (plan_.self_join())
    neighbors_.push_back({left.cell_starts[cell_], left.cell_starts[cell_ + 1], 0, 0, 0, true});
  // The cell's own place comes first: there neighbours are likeliest.
  for (std::uint32_t i = plan_.self_join() ? 1 : 0; i < numbers; ++i) {
    const std::uint32_t number = (numbers / 2 + i) % numbers;
    std::uint32_t there[kMaxGridDimensions];
    if (!neighbor_cell(grid, here, number, there)) continue;
    if (!visits(plan_.strategy.access_pattern, grid.dims, here, there)) continue;
    const std::uint64_t key = cell_key(grid, plan_.layout->order.cell_order, there);
    const std::size_t found = right.find_cell(cursors_[number], key);
    cursors_[number] = found;
    if (found < right.cells() && right.cell_keys[found] == key)
      neighbors_.push_back(
          {right.cell_starts[found], right.cell_starts[found + 1], 0, 0, 0, false});
  }
}

// A right point whose sort value differs from x by more than `reach`, rounded as Threshold::reach
// and reference_reach() define it, is out; and these points lie at the two ends of a sorted cell.

void PointWindows::place_window(NeighborCell& neighbor, double x) const {
  const double* const values = plan_.right->sort_values.data();
  const double reach = plan_.reach;
  neighbor.low = static_cast<std::uint32_t>(
      std::partition_point(values + neighbor.begin, values + neighbor.end,
                           [=](double y) { return x - y > reach; }) -
      values);
  neighbor.high =
      static_cast<std::uint32_t>(std::partition_point(values + neighbor.low, values + neighbor.end,
                                                      [=](double y) { return !(y - x > reach); }) -
                                 values);
}

void PointWindows::slide_window(NeighborCell& neighbor, double x) const {
  const double* const values = plan_.right->sort_values.data();
  const double reach = plan_.reach;
  // Half a walk begins in the own cell with the point itself.
  if (!(neighbor.own && plan_.half()))
    neighbor.low =
        skip(values, neighbor.low, neighbor.end, [=](double y) { return x - y > reach; });
  neighbor.high =
      skip(values, neighbor.high, neighbor.end, [=](double y) { return !(y - x > reach); });
}

double PointWindows::sort_value(std::uint32_t position) const {
  return plan_.left->sort_values.size() > 0 ? plan_.left->sort_values[position] : 0;
}

/// Makes the window that of a point with the sort value x.
void PointWindows::move_window(NeighborCell& neighbor, double x, bool entered) const {
  if (plan_.layout->order.sort_column == kNoColumn) {
    neighbor.low = neighbor.begin;
    neighbor.high = neighbor.end;
  } else if (entered) {
    place_window(neighbor, x);
  } else {
    slide_window(neighbor, x);
  }
}

/// Points of one cell that follow each other have nearly the same windows: one that begins with the
/// first point's and ends with the last one's has all. False: they would be more than twice as
/// long, and some.
bool PointWindows::share_windows(std::uint32_t first, std::uint32_t end, bool entered) {
  const bool sorted = plan_.layout->order.sort_column != kNoColumn;
  const double x = sort_value(first), last = sort_value(end - 1), reach = plan_.reach;
  const double* const values = plan_.right->sort_values.data();
  const std::uint64_t points = end - first;
  windows_.clear();
  candidates_ = 0;
  for (NeighborCell& neighbor : neighbors_) {
    move_window(neighbor, x, entered);
    neighbor.shared_high = neighbor.high;
    if (sorted) {
      const std::uint64_t from = neighbor.own ? first : neighbor.low;
      const std::uint64_t most = neighbor.high + (neighbor.high - from) + kTilePoints;
      const auto bound =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(neighbor.end, most + 1));
      neighbor.shared_high =
          skip(values, neighbor.high, bound, [=](double y) { return !(y - last > reach); });
      if (neighbor.shared_high > most) return false;
    }
    const std::uint32_t low = neighbor.own ? end : neighbor.low;
    if (low < neighbor.shared_high) windows_.push_back({low, neighbor.shared_high});
    candidates_ += points * (std::max(low, neighbor.shared_high) - low);
    if (candidates_ > kMaxPiece) return false;
  }
  // The next point's windows end there or later.
  for (NeighborCell& neighbor : neighbors_) neighbor.high = neighbor.shared_high;
  if (plan_.half()) candidates_ += points * (points - 1) / 2;
  return true;
}

void PointWindows::find_windows(std::uint32_t position, bool entered) {
  const double x = sort_value(position);
  windows_.clear();
  candidates_ = 0;
  for (NeighborCell& neighbor : neighbors_) {
    move_window(neighbor, x, entered);
    if (!neighbor.own) {
      add_window(neighbor.low, neighbor.high);
    } else if (plan_.half()) {
      // Later points of the own cell only, so that each pair in it is met once. All pairs include
      // (p, p).
      add_window(plan_.pairs == PairSelection::kAll ? position : position + 1, neighbor.high);
    } else if (plan_.pairs == PairSelection::kAll) {
      add_window(neighbor.low, neighbor.high);
    } else {
      add_window(neighbor.low, position);
      add_window(position + 1, neighbor.high);
    }
  }
}

void PointWindows::add_window(std::uint32_t begin, std::uint32_t end) {
  if (begin >= end) return;
  candidates_ += end - begin;
  const std::uint64_t most = max_piece();
  while (end - begin > most) {
    windows_.push_back({begin, static_cast<std::uint32_t>(begin + most)});
    begin += static_cast<std::uint32_t>(most);
  }
  windows_.push_back({begin, end});
}

}  // namespace gpujoin::cpu
