#include "cpu/walker.h"

#include <algorithm>

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

}  // namespace

double JoinPlan::exact_raw(std::uint32_t position, std::uint32_t neighbor) const {
  const Dataset& a = *left_points;
  const Dataset& b = *right_points;
  const std::uint64_t i = left->rows[position], j = right->rows[neighbor];
  if (a.scalar == ScalarType::kFloat32)
    return raw_distance(metric, point<float>(a, i), point<float>(b, j), a.dims);
  return raw_distance(metric, point<double>(a, i), point<double>(b, j), a.dims);
}

Walker::Walker(const JoinPlan& plan, MemoryBudget& budget, WorkerPool& pool, BatchQueue& queue,
               WalkTally& tally)
    : writer(queue, tally, plan.batch_entries), plan_(plan), pool_(pool) {
  const std::uint32_t neighbors = neighbor_count(plan.layout->order.grid.dims);
  neighbors_.reserve(neighbors);
  cursors_.resize(neighbors);
  query_.resize(plan.left->data->dims);
  scan_.tiles = plan.right->tiles.data();
  scan_.query = query_.data();
  scan_.dims = plan.left->data->dims;
  scan_.threshold = plan.strategy.screened ? plan.screen.reject : plan.threshold.raw;
  scan_.short_circuit = plan.strategy.short_circuit;

  const bool counts = plan.output == Output::kCountPerRow || plan.output == Output::kTotal;
  const bool looks_at_pairs = plan.strategy.screened || plan.pairs == PairSelection::kUnordered;
  if (counts && looks_at_pairs)
    scratch_positions_ = Buffer<std::uint32_t>(budget, kMaxWindow + kCollectPadding);
  if (plan.strategy.screened && !wants_distances(plan.output))
    scratch_raws_ = Buffer<double>(budget, kMaxWindow + kCollectPadding);
}

void Walker::walk(std::uint32_t first, std::uint32_t end) {
  writer.begin();
  const Buffer<std::uint32_t>& starts = plan_.left->cell_starts;
  std::size_t cell = std::upper_bound(starts.begin(), starts.end(), first) - starts.begin() - 1;
  for (std::uint32_t position = first; position < end; ++position) {
    pool_.throw_if_stopped();
    const bool entered = position == first || position == starts[cell + 1];
    if (entered) {
      if (position != first) ++cell;
      enter_cell(cell);
    }
    find_windows(position, entered);
    plan_.left->load_point(position, query_.data());
    switch (plan_.output) {
      case Output::kTotal:
        writer.pairs += count_pairs(position);
        break;
      case Output::kCountPerRow:
        writer.add_count(position, count_pairs(position));
        break;
      default:
        emit_pairs(position);
    }
  }
  writer.end();
}

/// Lists the non-empty cells on the right that hold candidates of a left cell's points.
void Walker::enter_cell(std::size_t cell) {
  const GridGeometry& grid = plan_.layout->order.grid;
  const GridIndex& left = *plan_.left;
  const GridIndex& right = *plan_.right;
  std::uint32_t here[kMaxGridDimensions];
  cell_of_row(grid, left.columns, left.rows[left.cell_starts[cell]], here);
  const std::uint32_t numbers = neighbor_count(grid.dims);
  neighbors_.clear();
  if (plan_.self_join())
    neighbors_.push_back({left.cell_starts[cell], left.cell_starts[cell + 1], 0, 0, true});
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

void Walker::place_window(NeighborCell& neighbor, double x) const {
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

void Walker::slide_window(NeighborCell& neighbor, double x) const {
  const double* const values = plan_.right->sort_values.data();
  const double reach = plan_.reach;
  while (neighbor.low < neighbor.end && x - values[neighbor.low] > reach) ++neighbor.low;
  while (neighbor.high < neighbor.end && !(values[neighbor.high] - x > reach)) ++neighbor.high;
}

void Walker::find_windows(std::uint32_t position, bool entered) {
  const bool sorted = plan_.layout->order.sort_column != kNoColumn;
  const double x =
      sorted ? plan_.left->sort_values.size() > 0 ? plan_.left->sort_values[position] : 0 : 0;
  windows_.clear();
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

void Walker::add_window(std::uint32_t begin, std::uint32_t end) {
  if (begin >= end) return;
  writer.candidates += end - begin;
  const std::uint64_t most = std::min(plan_.batch_entries, kMaxWindow);
  while (end - begin > most) {
    windows_.push_back({begin, static_cast<std::uint32_t>(begin + most)});
    begin += static_cast<std::uint32_t>(most);
  }
  windows_.push_back({begin, end});
}

/// Calls visit(windows, count, candidates) for runs of windows whose candidates surely fit in a
/// batch and in the scratch buffers.
template <class Visit>
void Walker::for_pieces(const Visit& visit) {
  const std::uint64_t most = std::min(plan_.batch_entries, kMaxWindow);
  for (std::size_t first = 0; first < windows_.size();) {
    std::size_t end = first;
    std::uint64_t total = 0;
    while (end < windows_.size() && total + (windows_[end].end - windows_[end].begin) <= most) {
      total += windows_[end].end - windows_[end].begin;
      ++end;
    }
    visit(windows_.data() + first, end - first, total);
    pool_.throw_if_stopped();
    first = end;
  }
}

/// Collects the pairs of a left point. `raws` receives raw distances; it is null where none are
/// wanted.
std::size_t Walker::collect(std::uint32_t position, const Window* windows, std::size_t count,
                            std::uint32_t* positions, double* raws) {
  if (!plan_.strategy.screened) return plan_.kernel.collect(scan_, windows, count, positions, raws);
  double* const sums = raws != nullptr ? raws : scratch_raws_.data();
  const std::size_t passed = plan_.kernel.collect(scan_, windows, count, positions, sums);
  return recheck(position, passed, positions, sums);
}

/// Decides what a screen let pass, by the definition where the sum alone does not decide.
std::size_t Walker::recheck(std::uint32_t position, std::size_t count, std::uint32_t* positions,
                            double* raws) {
  const bool wants_distance = wants_distances(plan_.output);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const bool certain = raws[i] <= plan_.screen.accept;
    writer.rechecked += !certain;
    const double raw =
        certain && !wants_distance ? raws[i] : plan_.exact_raw(position, positions[i]);
    if (!certain && !(raw <= plan_.threshold.raw)) continue;
    positions[kept] = positions[i];
    raws[kept++] = raw;
  }
  return kept;
}

/// The number of pairs of a left point; in half a walk both orders of each.
std::uint64_t Walker::count_pairs(std::uint32_t position) {
  const bool smaller_first =
      plan_.output == Output::kCountPerRow && plan_.pairs == PairSelection::kUnordered;
  std::uint64_t found = 0;
  bool own = false;  // (p, p) is a pair: by rounding its cosine distance may be above eps
  for_pieces([&](const Window* windows, std::size_t count, std::uint64_t) {
    if (!plan_.strategy.screened && !smaller_first) {
      found += plan_.kernel.count(scan_, windows, count);
      own = plan_.pairs == PairSelection::kAll;  // its sum is 0
      return;
    }
    std::uint32_t* const positions = scratch_positions_.data();
    const std::size_t collected = collect(position, windows, count, positions, nullptr);
    if (!smaller_first) {
      found += collected;
      own = own || (collected > 0 && positions[0] == position);  // the first candidate of all
      return;
    }
    const std::int64_t* const ids = plan_.right->ids.data();
    found += std::count_if(positions, positions + collected, [&](std::uint32_t q) {
      return ids[q] != ids[position] ? ids[q] > ids[position] : q > position;
    });
  });
  if (!plan_.mirrored()) return found;
  return 2 * found - (own ? 1 : 0);  // (p, p) has one order
}

void Walker::emit_pairs(std::uint32_t position) {
  for_pieces([&](const Window* windows, std::size_t count, std::uint64_t most) {
    BatchBuffer& batch = writer.make_room(most);
    std::uint32_t* const neighbors = batch.neighbors.data() + batch.entry_count;
    double* const distances =
        batch.distances.size() > 0 ? batch.distances.data() + batch.entry_count : nullptr;
    const std::size_t found = collect(position, windows, count, neighbors, distances);
    if (found == 0) return;
    if (distances != nullptr)
      for (std::size_t i = 0; i < found; ++i)
        distances[i] = distance_from_raw(plan_.metric, distances[i]);
    // The own cell's window comes first and begins with (p, p), which has one order.
    const std::uint64_t orders =
        plan_.mirrored() ? 2 * found - (neighbors[0] == position ? 1 : 0) : found;
    writer.add_row(batch, position, found, orders);
  });
}

}  // namespace gpujoin::cpu
