#include "cpu/walk/point_windows.h"

#include <algorithm>
#include <utility>

#include "core/cell_order.h"
#include "core/cell_walk.h"

namespace gpujoin::cpu {
namespace {

/// The first index whose key is not below `key`, searched outwards from `hint`: neighbours of
/// consecutive cells are near each other in every cell order, in linear order mostly the next one.
std::size_t find_cell(const Buffer<std::uint64_t>& keys, std::size_t hint, std::uint64_t key) {
  const std::size_t size = keys.size();
  std::size_t low = 0, high = size, step = 1;
  if (hint < size && keys[hint] < key) {
    low = hint + 1;
    while (low + step < size && keys[low + step] < key) {
      low += step + 1;
      step *= 2;
    }
    high = std::min(size, low + step);
  } else {
    high = std::min(hint, size);
    while (high >= step && keys[high - step] >= key) {
      high -= step;
      step *= 2;
    }
    low = high >= step ? high - step : 0;
  }
  return std::lower_bound(keys.begin() + low, keys.begin() + high, key) - keys.begin();
}

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

}  // namespace

PointWindows::PointWindows(const JoinPlan& plan) : plan_(plan) {
  const std::uint32_t neighbors = neighbor_count(plan.layout->order.grid.dims);
  neighbors_.reserve(neighbors);
  cursors_.resize(neighbors);
}

void PointWindows::start(std::uint32_t first) {
  const Buffer<std::uint32_t>& starts = plan_.left->cell_starts;
  cell_ = std::upper_bound(starts.begin(), starts.end(), first) - starts.begin() - 1;
  started_ = true;
}

void PointWindows::move_to(std::uint32_t position) {
  const bool next_cell = position == plan_.left->cell_starts[cell_ + 1];
  if (next_cell) ++cell_;
  const bool entered = std::exchange(started_, false) || next_cell;
  if (entered) enter_cell();
  find_windows(position, entered);
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
    neighbors_.push_back({left.cell_starts[cell_], left.cell_starts[cell_ + 1], 0, 0, true});
  for (std::uint32_t number = 0; number < numbers; ++number) {
    if (plan_.self_join() && number == numbers / 2) continue;
    std::uint32_t there[kMaxGridDimensions];
    if (!neighbor_cell(grid, here, number, there)) continue;
    if (!visits(plan_.strategy.access_pattern, grid.dims, here, there)) continue;
    const std::uint64_t key = cell_key(grid, plan_.layout->order.cell_order, there);
    const std::size_t found = find_cell(right.cell_keys, cursors_[number], key);
    cursors_[number] = found;
    if (found < right.cells() && right.cell_keys[found] == key)
      neighbors_.push_back({right.cell_starts[found], right.cell_starts[found + 1], 0, 0, false});
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

void PointWindows::find_windows(std::uint32_t position, bool entered) {
  const bool sorted = plan_.layout->order.sort_column != kNoColumn;
  const double x =
      sorted ? plan_.left->sort_values.size() > 0 ? plan_.left->sort_values[position] : 0 : 0;
  windows_.clear();
  candidates_ = 0;
  for (NeighborCell& neighbor : neighbors_) {
    if (!sorted) {
      neighbor.low = neighbor.begin;
      neighbor.high = neighbor.end;
    } else if (entered) {
      place_window(neighbor, x);
    } else {
      slide_window(neighbor, x);
    }
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
