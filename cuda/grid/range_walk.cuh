// The walk of one point by a group of threads: its windows in neighbouring cells, and each
// candidate in them. Geometry, patterns and distances are src/core's.
#pragma once

#include <cooperative_groups.h>

#include "core/cell_walk.h"
#include "core/distance.h"
#include "cuda/device/kernel_helpers.cuh"
#include "cuda/device/tuning.h"
#include "cuda/grid/range_kernels.h"

namespace gpujoin::cuda {

namespace cg = cooperative_groups;

template <std::uint32_t G>
using Group = cg::thread_block_tile<G>;

/// The coordinates of a point: D of them in registers, or for D = 0 any number in memory.
template <class T, std::uint32_t D>
struct Query {
  double x[D];
  __device__ Query(const PointsView& points, std::uint32_t position, std::uint32_t) {
#pragma unroll
    for (std::uint32_t d = 0; d < D; ++d)
      x[d] = static_cast<const T*>(points.columns)[std::uint64_t{d} * points.stride + position];
  }
};

template <class T>
struct Query<T, 0> {
  const T* first;
  std::uint64_t stride;
  std::uint32_t dims;
  __device__ Query(const PointsView& points, std::uint32_t position, std::uint32_t dimensions)
      : first(static_cast<const T*>(points.columns) + position),
        stride(points.stride),
        dims(dimensions) {}
};

/// Law 1, in column order. Returns a raw distance; beyond the threshold it may be a partial one
/// (SHORTC [GPU-Join, section 4.4]).
template <Metric M, class T, std::uint32_t D>
__device__ double raw_to(const JoinView& join, const Query<T, D>& query, std::uint32_t candidate) {
  const T* const column = static_cast<const T*>(join.right.columns) + candidate;
  const std::uint64_t stride = join.right.stride;
  double raw = 0;
  if constexpr (D > 0) {
#pragma unroll
    for (std::uint32_t d = 0; d < D; ++d)
      raw = add_coordinate<M>(raw, query.x[d], column[d * stride]);
  } else {
    for (std::uint32_t d = 0; d < query.dims; ++d) {
      raw = add_coordinate<M>(raw, query.first[d * query.stride], column[d * stride]);
      if (join.short_circuit && raw > join.threshold) break;
    }
  }
  return raw;
}

/// The cell that a left point lies in.
template <class T>
__device__ void cell_of_point(const JoinView& join, std::uint32_t position, std::uint32_t* cell) {
  const GridGeometry& grid = join.layout.grid;
  const T* const columns = static_cast<const T*>(join.left.columns);
  for (std::uint32_t d = 0; d < grid.dims; ++d)
    cell[d] = cell_coordinate(grid, d,
                              columns[std::uint64_t{grid.column[d]} * join.left.stride + position]);
}

/// The candidates of a point in neighbour `number` of its cell; empty where it has none. In half a
/// walk of a self-join the candidates in the own cell are the later points, and the point itself
/// where self-pairs are wanted.
template <class T>
__device__ PositionRange window_of(const JoinView& join, std::uint32_t position,
                                   const std::uint32_t* cell, double x, std::uint32_t number,
                                   std::uint32_t numbers) {
  std::uint32_t there[kMaxGridDimensions];
  const GridGeometry& grid = join.layout.grid;
  const bool own = join.self_join && number == numbers / 2;
  if (!neighbor_cell(grid, cell, number, there)) return {0, 0};
  if (!own && !visits(join.pattern, grid.dims, cell, there)) return {0, 0};
  const bool half = join.pattern != AccessPattern::kFull;
  const std::uint32_t from =
      own && half ? position + (join.pairs == PairSelection::kAll ? 0 : 1) : 0;
  return points_in_reach(join.layout, join.right.codes, from, join.right.points, there, x,
                         join.reach);
}

/// The neighbour cell that is visited in a given turn: the own cell, which is the middle one, comes
/// first. So where a self-join wants self-pairs, a point's self-pair is its first pair.
__device__ inline std::uint32_t neighbor_in_turn(std::uint32_t turn, std::uint32_t numbers) {
  const std::uint32_t own = numbers / 2;
  return turn == 0 ? own : turn <= own ? turn - 1 : turn;
}

/// Calls visit(window) on all threads of the group together, for every window of candidates of
/// `position`.
template <class T, std::uint32_t G, class Visit>
__device__ void for_windows(const JoinView& join, const Group<G>& group, std::uint32_t position,
                            const Visit& visit) {
  std::uint32_t cell[kMaxGridDimensions];
  cell_of_point<T>(join, position, cell);
  const double x =
      join.layout.sort_column == kNoColumn
          ? 0.0
          : static_cast<const T*>(
                join.left
                    .columns)[std::uint64_t(join.layout.sort_column) * join.left.stride + position];
  const std::uint32_t numbers = neighbor_count(join.layout.grid.dims);
  // Each thread searches one window, then the group goes through all of them.
  for (std::uint32_t base = 0; base < numbers; base += G) {
    const std::uint32_t mine = base + group.thread_rank();
    const PositionRange window =
        mine < numbers
            ? window_of<T>(join, position, cell, x, neighbor_in_turn(mine, numbers), numbers)
            : PositionRange{0, 0};
    for (std::uint32_t turn = 0; turn < G && base + turn < numbers; ++turn)
      visit(PositionRange{group.shfl(window.begin, turn), group.shfl(window.end, turn)});
  }
}

/// Calls visit(candidate, is_candidate) on all threads of the group together, for every point in
/// the windows; threads beyond the end of a window get is_candidate = false.
template <class T, std::uint32_t G, class Visit>
__device__ void walk_point(const JoinView& join, const Group<G>& group, std::uint32_t position,
                           const Visit& visit) {
  for_windows<T, G>(join, group, position, [&](const PositionRange& window) {
    for (std::uint32_t start = window.begin; start < window.end; start += G) {
      const std::uint32_t candidate = start + group.thread_rank();
      visit(candidate, candidate < window.end);
    }
  });
}

/// Whether a candidate that is within eps counts for this left point.
__device__ inline bool is_wanted(const JoinView& join, std::uint32_t position,
                                 std::uint32_t candidate) {
  if (!join.self_join) return true;
  if (candidate == position) return join.pairs == PairSelection::kAll;
  if (!join.smaller_id_first) return true;
  const std::int64_t a = join.left.ids[position], b = join.right.ids[candidate];
  return a != b ? a < b : position < candidate;
}

/// Runs task(place, position) for each point of a stretch, by groups of G threads that all take
/// part: in turn, or from a queue (WORKQUEUE [load-imbalance, section III-D]).
template <std::uint32_t G, class Task>
__device__ void for_points(const JoinView& join, const Stretch& stretch, bool queue,
                           const Task& task) {
  const Group<G> group = cg::tiled_partition<G>(cg::this_thread_block());
  const std::uint64_t groups = global_threads() / G;
  // Threads of a group leave together: a thread that stayed would wait for the others.
  const auto must_stop = [&] {
    return group.any(*static_cast<const volatile unsigned*>(join.stop) != 0);
  };
  const auto position_at = [&](std::uint32_t place) {
    return join.sequence != nullptr ? join.sequence[place] : place;
  };
  if (!queue) {
    for (std::uint64_t place = stretch.first + global_thread() / G; place < stretch.end;
         place += groups) {
      if (must_stop()) return;
      task(group, static_cast<std::uint32_t>(place),
           position_at(static_cast<std::uint32_t>(place)));
    }
    return;
  }
  for (;;) {
    unsigned place = 0;
    if (group.thread_rank() == 0) place = atomicAdd(stretch.next, 1u);
    place = group.shfl(place, 0);
    if (place >= stretch.end || must_stop()) return;
    task(group, place, position_at(place));
  }
}

}  // namespace gpujoin::cuda
