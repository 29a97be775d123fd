#include "core/border_rule.h"
#include "core/ordered_bits.h"
#include "cuda/clusters/cluster_kernels.h"
#include "cuda/clusters/labels.cuh"
#include "cuda/device/kernel_helpers.cuh"
#include "cuda/grid/range_dispatch.h"
#include "cuda/grid/range_walk.cuh"

namespace gpujoin::cuda {
namespace {

constexpr std::uint32_t kBetweenLooks = 1024;  // candidates

__global__ void cell_flags_kernel(const std::uint64_t* codes, std::uint32_t points,
                                  std::uint32_t* cell_of) {
  const std::uint64_t position = global_thread();
  if (position < points)
    cell_of[position] = position > 0 && codes[position] != codes[position - 1] ? 1 : 0;
}

__global__ void cells_kernel(const std::uint64_t* codes, std::uint32_t value_bits,
                             std::uint32_t points, const std::uint32_t* cell_of,
                             std::uint32_t cells, std::uint32_t* cell_starts,
                             std::uint64_t* cell_keys) {
  const std::uint64_t position = global_thread();
  if (position >= points) return;
  const std::uint32_t cell = cell_of[position];
  if (position == 0) cell_starts[cells] = points;
  if (position > 0 && cell_of[position - 1] == cell) return;
  cell_starts[cell] = static_cast<std::uint32_t>(position);
  cell_keys[cell] = codes[position] >> value_bits;
}

__global__ void directory_kernel(const std::uint64_t* cell_keys, std::uint32_t cells,
                                 std::uint32_t shift, std::uint32_t elements,
                                 std::uint32_t* directory) {
  const std::uint64_t element = global_thread();
  if (element < elements)
    directory[element] = first_not_below(cell_keys, 0, cells, element << shift);
}

/// The first cell whose key is not below this one.
__device__ std::uint32_t find_cell(const ClusterView& view, std::uint64_t key) {
  const std::uint32_t* const place = view.directory + (key >> view.directory_shift);
  return first_not_below(view.cell_keys, place[0], place[1], key);
}

__device__ PositionRange points_of(const ClusterView& view, std::uint32_t cell) {
  return {view.cell_starts[cell], view.cell_starts[cell + 1]};
}

__device__ bool is_boxed(const PositionRange& cell) {
  return cell.end - cell.begin >= kBoxedPoints;
}

__device__ std::uint64_t* box_of(const ClusterView& view, const PositionRange& cell) {
  return view.boxes + std::uint64_t{cell.begin / kBoxedPoints} * 2 * view.join.dims;
}

template <class T>
__device__ double coordinate(const ClusterView& view, std::uint32_t position, std::uint32_t d) {
  return static_cast<const T*>(
      view.join.left.columns)[std::uint64_t{d} * view.join.left.stride + position];
}

__global__ void clear_boxes_kernel(ClusterView view) {
  const std::uint64_t number = global_thread();
  const std::uint64_t numbers =
      (std::uint64_t{view.join.left.points} / kBoxedPoints + 1) * 2 * view.join.dims;
  if (number < numbers) view.boxes[number] = number % 2 == 0 ? ~std::uint64_t{0} : 0;
}

/// A point that changes nothing reads only, so that equal points in great number do not wait for
/// each other.
template <class T>
__global__ void boxes_kernel(ClusterView view) {
  const std::uint64_t position = global_thread();
  if (position >= view.join.left.points) return;
  const PositionRange cell = points_of(view, view.cell_of[position]);
  if (!is_boxed(cell)) return;
  std::uint64_t* const box = box_of(view, cell);
  for (std::uint32_t d = 0; d < view.join.dims; ++d) {
    const std::uint64_t bits =
        ordered_bits(coordinate<T>(view, static_cast<std::uint32_t>(position), d));
    if (bits < *static_cast<volatile std::uint64_t*>(box + 2 * d))
      atomicMin(reinterpret_cast<unsigned long long*>(box + 2 * d), bits);
    if (bits > *static_cast<volatile std::uint64_t*>(box + 2 * d + 1))
      atomicMax(reinterpret_cast<unsigned long long*>(box + 2 * d + 1), bits);
  }
}

template <Metric M, class T>
__global__ void whole_kernel(ClusterView view) {
  const std::uint64_t cell = global_thread();
  if (cell >= view.cells) return;
  const PositionRange points = points_of(view, static_cast<std::uint32_t>(cell));
  view.first_core[cell] = kNoPoint;
  double raw = 0;
  for (std::uint32_t d = 0; d < view.join.dims; ++d) {
    double low, high;
    if (is_boxed(points)) {
      low = from_ordered_bits(box_of(view, points)[2 * d]);
      high = from_ordered_bits(box_of(view, points)[2 * d + 1]);
    } else {
      low = high = coordinate<T>(view, points.begin, d);
      for (std::uint32_t point = points.begin + 1; point < points.end; ++point) {
        const double x = coordinate<T>(view, point, d);
        low = x < low ? x : low;
        high = x > high ? x : high;
      }
    }
    raw = add_coordinate<M>(raw, low, high);
  }
  view.whole[cell] = raw <= view.join.threshold;
}

/// Calls visit(cell) for the cell of a point and for cells that may have neighbours of its points,
/// until it returns false. `later`: for those alone that come after it.
template <class Visit>
__device__ void for_cells(const ClusterView& view, std::uint32_t cell, bool later,
                          const Visit& visit) {
  const GridGeometry& grid = view.join.layout.grid;
  const std::uint32_t dims = grid.dims, bits = grid.bits, span = 2 * view.radius + 1;
  if (dims == 0) {  // there is no other cell
    if (!later) visit(cell);
    return;
  }
  const std::uint64_t key = view.cell_keys[cell], mask = (std::uint64_t{1} << bits) - 1;
  const auto here = static_cast<std::int64_t>(key & mask);
  const auto last = static_cast<std::int64_t>(grid.cells[dims - 1]) - 1;
  const auto radius = static_cast<std::int64_t>(view.radius);
  const auto low = static_cast<std::uint64_t>(max(std::int64_t{0}, here - radius));
  const auto high = static_cast<std::uint64_t>(min(last, here + radius));
  std::uint32_t rows = 1;
  for (std::uint32_t d = 1; d < dims; ++d) rows *= span;
  for (std::uint32_t turn = 0; turn < rows; ++turn) {
    const std::uint32_t number = (rows / 2 + turn) % rows;  // the own row first
    std::uint64_t base = 0;
    std::uint32_t rest = number;
    bool inside = true;
    for (std::uint32_t d = dims - 1; d-- > 0; rest /= span) {
      const std::uint32_t shift = bits * (dims - 1 - d);
      const std::uint64_t there = (key >> shift & mask) + rest % span - view.radius;
      inside = inside && there < grid.cells[d];  // below 0 it wraps
      base |= there << shift;
    }
    if (!inside || (later && (base | high) <= key)) continue;
    std::uint32_t at;
    if (turn == 0) {
      at = cell + 1;
      if (!later) {
        for (at = cell; at > 0 && view.cell_keys[at - 1] >= (base | low);) --at;
      }
    } else {
      at = find_cell(view, base | low);
    }
    for (; at < view.cells && view.cell_keys[at] <= (base | high); ++at)
      if (!visit(at)) return;
  }
}

/// Whether a point may have neighbours in a cell, as far as its box tells.
template <Metric M, class T>
__device__ bool may_reach(const ClusterView& view, std::uint32_t position,
                          const PositionRange& cell) {
  if (!is_boxed(cell)) return true;
  const std::uint64_t* const box = box_of(view, cell);
  double raw = 0;
  for (std::uint32_t d = 0; d < view.join.dims; ++d) {
    const double x = coordinate<T>(view, position, d);
    raw = add_gap<M>(raw, x, x, from_ordered_bits(box[2 * d]), from_ordered_bits(box[2 * d + 1]));
  }
  return !(raw > view.join.threshold);
}

/// What boxes tell of the pairs of two cells.
struct CellPair {
  bool near;  ///< some may be neighbours
  bool all;   ///< all are
};

template <Metric M>
__device__ CellPair compare_cells(const ClusterView& view, const PositionRange& a,
                                  const PositionRange& b) {
  if (!is_boxed(a) || !is_boxed(b)) return {true, false};
  const std::uint64_t *const x = box_of(view, a), *const y = box_of(view, b);
  double gap = 0, reach = 0;
  for (std::uint32_t d = 0; d < view.join.dims; ++d) {
    const double low = from_ordered_bits(x[2 * d]), high = from_ordered_bits(x[2 * d + 1]);
    const double other_low = from_ordered_bits(y[2 * d]),
                 other_high = from_ordered_bits(y[2 * d + 1]);
    gap = add_gap<M>(gap, low, high, other_low, other_high);
    reach = add_span<M>(reach, low, high, other_low, other_high);
  }
  return {!(gap > view.join.threshold), reach <= view.join.threshold};
}

/// Calls visit(candidate, raw) for the points of a window within eps, until it returns false;
/// look() now and then, likewise. Counts the candidates.
template <Metric M, class T, std::uint32_t D, class Visit, class Look>
__device__ void for_neighbors(const ClusterView& view, const Query<T, D>& query,
                              PositionRange window, unsigned long long* candidates,
                              const Visit& visit, const Look& look) {
  for (std::uint32_t candidate = window.begin; candidate < window.end; ++candidate) {
    if (candidate % kBetweenLooks == 0 && !look()) return;
    ++*candidates;
    const double raw = raw_to<M, T, D>(view.join, query, candidate);
    if (raw <= view.join.threshold && !visit(candidate, raw)) return;
  }
}

__device__ bool must_stop(const ClusterView& view) {
  return *static_cast<const volatile unsigned*>(view.join.stop) != 0;
}

/// Runs task(position, &candidates) for points, one a thread, and reports what they compared.
template <class Task>
__device__ void for_each_point(const ClusterView& view, std::uint32_t first, std::uint32_t end,
                               const Task& task) {
  const std::uint64_t position = first + global_thread();
  unsigned long long candidates = 0;
  if (position < end && !must_stop(view)) task(static_cast<std::uint32_t>(position), &candidates);
  add_over_block(candidates, view.candidates);
}

template <Metric M, class T, std::uint32_t D>
__device__ bool is_core_point(const ClusterView& view, std::uint32_t position,
                              unsigned long long* candidates) {
  const std::uint32_t own = view.cell_of[position];
  const PositionRange mine = points_of(view, own);
  const bool whole = view.whole[own] != 0;
  std::uint64_t neighbors = whole ? mine.end - mine.begin : 1;
  if (neighbors >= view.min_points) return true;
  const Query<T, D> query(view.join.left, position, view.join.dims);
  const auto count = [&](std::uint32_t candidate, double) {
    neighbors += candidate != position;
    return neighbors < view.min_points;
  };
  for_cells(view, own, false, [&](std::uint32_t cell) {
    if (cell == own && whole) return true;
    const PositionRange points = points_of(view, cell);
    if (may_reach<M, T>(view, position, points))
      for_neighbors<M, T, D>(view, query, points, candidates, count,
                             [&] { return !must_stop(view); });
    return neighbors < view.min_points;
  });
  return neighbors >= view.min_points;
}

template <Metric M, class T, std::uint32_t D>
__global__ void __launch_bounds__(kBlockThreads)
    cores_kernel(ClusterView view, std::uint32_t first, std::uint32_t end) {
  for_each_point(view, first, end, [&](std::uint32_t position, unsigned long long* candidates) {
    const bool core = is_core_point<M, T, D>(view, position, candidates);
    view.labels.roles[position] = core ? ClusterRole::kCore : ClusterRole::kNoise;
    if (!core) return;
    std::uint32_t* const known = view.first_core + view.cell_of[position];
    if (position < *static_cast<volatile std::uint32_t*>(known)) atomicMin(known, position);
  });
}

/// Rows that are not finite have no neighbour but themselves.
__global__ void links_kernel(ClusterView view) {
  const std::uint64_t at = global_thread();
  if (at >= view.labels.rows) return;
  const auto position = static_cast<std::uint32_t>(at);
  view.labels.links[position] = position;
  if (position >= view.join.left.points) {
    view.labels.roles[position] = view.min_points == 1 ? ClusterRole::kCore : ClusterRole::kNoise;
  } else if (view.labels.roles[position] == ClusterRole::kCore) {
    const std::uint32_t cell = view.cell_of[position];
    if (view.whole[cell] != 0) view.labels.links[position] = view.first_core[cell];
  }
}

/// Unites a core point with those within eps in later cells, and in its own one unless that is
/// whole.
template <Metric M, class T, std::uint32_t D>
__device__ void unite_point(const ClusterView& view, std::uint32_t position,
                            unsigned long long* candidates) {
  const std::uint32_t own = view.cell_of[position];
  const PositionRange mine = points_of(view, own);
  const bool whole = view.whole[own] != 0;
  const Query<T, D> query(view.join.left, position, view.join.dims);
  if (!whole)
    for_neighbors<M, T, D>(
        view, query, {position + 1, mine.end}, candidates,
        [&](std::uint32_t candidate, double) {
          if (view.labels.roles[candidate] == ClusterRole::kCore)
            unite(view.labels, position, candidate);
          return true;
        },
        [&] { return !must_stop(view); });
  for_cells(view, own, true, [&](std::uint32_t cell) {
    const std::uint32_t other = view.first_core[cell];
    if (other == kNoPoint) return true;
    const PositionRange points = points_of(view, cell);
    const bool one = view.whole[cell] != 0;  // its core points are one cluster
    const auto united = [&] {
      return one && find_root(view.labels, position) == find_root(view.labels, other);
    };
    if (united()) return true;
    const CellPair boxes = compare_cells<M>(view, mine, points);
    if (!boxes.near) return true;
    if (boxes.all && one) {
      unite(view.labels, position, other);
      return true;
    }
    if (!may_reach<M, T>(view, position, points)) return true;
    for_neighbors<M, T, D>(
        view, query, {other, points.end}, candidates,
        [&](std::uint32_t candidate, double) {
          if (view.labels.roles[candidate] != ClusterRole::kCore) return true;
          unite(view.labels, position, candidate);
          return !one;
        },
        [&] { return !must_stop(view) && !united(); });
    return true;
  });
}

template <Metric M, class T, std::uint32_t D>
__global__ void __launch_bounds__(kBlockThreads)
    unite_kernel(ClusterView view, std::uint32_t first, std::uint32_t end) {
  for_each_point(view, first, end, [&](std::uint32_t position, unsigned long long* candidates) {
    if (view.labels.roles[position] == ClusterRole::kCore)
      unite_point<M, T, D>(view, position, candidates);
  });
}

/// Links a point that is no core point with a core point near it.
template <Metric M, class T, std::uint32_t D>
__global__ void __launch_bounds__(kBlockThreads)
    borders_kernel(ClusterView view, std::uint32_t first, std::uint32_t end) {
  constexpr Metric kOrder = M == Metric::kL2 ? Metric::kL2 : Metric::kL1;
  for_each_point(view, first, end, [&](std::uint32_t position, unsigned long long* candidates) {
    if (view.labels.roles[position] == ClusterRole::kCore) return;
    const Query<T, D> query(view.join.left, position, view.join.dims);
    Neighbor best{0, kNoPoint};
    for_cells(view, view.cell_of[position], false, [&](std::uint32_t cell) {
      if (view.first_core[cell] == kNoPoint) return true;
      const PositionRange points = points_of(view, cell);
      if (!may_reach<M, T>(view, position, points)) return true;
      for_neighbors<M, T, D>(
          view, query, {view.first_core[cell], points.end}, candidates,
          [&](std::uint32_t candidate, double raw) {
            if (view.labels.roles[candidate] != ClusterRole::kCore) return true;
            const Neighbor found{raw, candidate};
            if (best.position == kNoPoint ||
                is_followed_before<kOrder>(view.borders, found, best, view.join.left.ids))
              best = found;
            return true;
          },
          [&] { return !must_stop(view); });
      return true;
    });
    if (best.position == kNoPoint) return;
    view.labels.links[position] = best.position;
    view.labels.roles[position] = ClusterRole::kBorder;
  });
}

/// Calls launch.template operator()<M, T, D>().
template <class Launch>
void dispatch_clusters(const KernelChoice& choice, const Launch& launch) {
  dispatch_dimensions<2, 3>(choice, launch);
}

}  // namespace

void launch_cell_flags(const std::uint64_t* codes, std::uint32_t points, std::uint32_t* cell_of,
                       cudaStream_t stream) {
  cell_flags_kernel<<<blocks_for(points), kBlockThreads, 0, stream>>>(codes, points, cell_of);
  check_launch("finding cells");
}

void launch_cells(const std::uint64_t* codes, std::uint32_t value_bits, std::uint32_t points,
                  const std::uint32_t* cell_of, std::uint32_t cells, std::uint32_t* cell_starts,
                  std::uint64_t* cell_keys, cudaStream_t stream) {
  cells_kernel<<<blocks_for(points), kBlockThreads, 0, stream>>>(codes, value_bits, points, cell_of,
                                                                 cells, cell_starts, cell_keys);
  check_launch("listing cells");
}

void launch_directory(const std::uint64_t* cell_keys, std::uint32_t cells, std::uint32_t shift,
                      std::uint32_t elements, std::uint32_t* directory, cudaStream_t stream) {
  directory_kernel<<<blocks_for(elements), kBlockThreads, 0, stream>>>(cell_keys, cells, shift,
                                                                       elements, directory);
  check_launch("listing cells");
}

void launch_measure(const KernelChoice& choice, const ClusterView& view, cudaStream_t stream) {
  const std::uint32_t points = view.join.left.points;
  clear_boxes_kernel<<<blocks_for((points / kBoxedPoints + std::uint64_t{1}) * 2 * view.join.dims),
                       kBlockThreads, 0, stream>>>(view);
  dispatch_clusters(choice, [&]<Metric M, class T, std::uint32_t>() {
    boxes_kernel<T><<<blocks_for(points), kBlockThreads, 0, stream>>>(view);
    whole_kernel<M, T><<<blocks_for(view.cells), kBlockThreads, 0, stream>>>(view);
  });
  check_launch("measuring cells");
}

void launch_cores(const KernelChoice& choice, const ClusterView& view, std::uint32_t first,
                  std::uint32_t end, cudaStream_t stream) {
  dispatch_clusters(choice, [&]<Metric M, class T, std::uint32_t D>() {
    cores_kernel<M, T, D><<<blocks_for(end - first), kBlockThreads, 0, stream>>>(view, first, end);
  });
  check_launch("counting neighbours");
}

void launch_links(const ClusterView& view, cudaStream_t stream) {
  links_kernel<<<blocks_for(view.labels.rows), kBlockThreads, 0, stream>>>(view);
  check_launch("linking cells");
}

void launch_unite(const KernelChoice& choice, const ClusterView& view, std::uint32_t first,
                  std::uint32_t end, cudaStream_t stream) {
  dispatch_clusters(choice, [&]<Metric M, class T, std::uint32_t D>() {
    unite_kernel<M, T, D><<<blocks_for(end - first), kBlockThreads, 0, stream>>>(view, first, end);
  });
  check_launch("uniting clusters");
}

void launch_borders(const KernelChoice& choice, const ClusterView& view, std::uint32_t first,
                    std::uint32_t end, cudaStream_t stream) {
  dispatch_clusters(choice, [&]<Metric M, class T, std::uint32_t D>() {
    borders_kernel<M, T, D>
        <<<blocks_for(end - first), kBlockThreads, 0, stream>>>(view, first, end);
  });
  check_launch("looking for core points");
}

}  // namespace gpujoin::cuda
