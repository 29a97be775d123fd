// The walk of the grid: each left point, by a group of threads, against the candidates in its
// windows in neighbouring cells. Geometry, patterns and distances are src/core's; a sink takes what
// is found (core/pair_sink.h).
//
// A sink is copied to each thread, whose state it may hold. take() is called on the one thread that
// found the pair, and all pairs of a left point before those of its group's next one. Beside
// take(), or in its place, a sink of this walk may have
//
//   void start();                                         before the thread's first point
//   void begin(std::uint32_t index, std::uint32_t left);  before a point, the one at this index of
//                                                         the stretch's arrays
//   bool wants_point() const;                             after begin(). False: the point is left
//                                                         out, and its end()
//   static constexpr std::uint32_t kBlock;
//   bool wants_block(std::uint32_t block) const;          false: the right points from kBlock *
//                                                         block on are left out, kBlock of them
//   bool wants(std::uint32_t right);                      false: this one is, before its distance
//                                                         is computed
//   void take_together(const Group<G>& group, bool found, std::uint32_t right, double distance);
//                                                         on all threads of the group at a time
//   void take_number(const Group<G>& group, std::uint32_t index, std::uint32_t entries);
//                                                         kNeed = kNumber: after a point, likewise;
//                                                         each thread with the pairs that it found
//   void end(const Group<G>& group);                      after a point, likewise
//   void finish(unsigned long long candidates);           after the last point, on all threads of
//                                                         the block; the thread compared so many
//
// What a sink lacks costs nothing.
#pragma once

#include <cooperative_groups.h>

#include "core/cell_walk.h"
#include "core/distance.h"
#include "core/pair_sink.h"
#include "cuda/device/kernel_helpers.cuh"
#include "cuda/device/tuning.h"
#include "cuda/grid/range_dispatch.h"
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

/// Calls visit(candidate, is_candidate) on all threads of the group together, for every point in a
/// window; threads beyond its end get is_candidate = false.
template <std::uint32_t G, class Visit>
__device__ void for_candidates(const Group<G>& group, const PositionRange& window,
                               const Visit& visit) {
  for (std::uint32_t start = window.begin; start < window.end; start += G) {
    const std::uint32_t candidate = start + group.thread_rank();
    visit(candidate, candidate < window.end);
  }
}

/// Calls visit(window) for the parts of a window in the blocks that the sink wants.
template <class Sink, class Visit>
__device__ void for_wanted(const Sink& sink, const PositionRange& window, const Visit& visit) {
  if constexpr (requires { sink.wants_block(0u); }) {
    std::uint32_t end;
    for (std::uint32_t begin = window.begin; begin < window.end; begin = end) {
      const std::uint32_t block = begin / Sink::kBlock;
      end = min(window.end, (block + 1) * Sink::kBlock);
      if (sink.wants_block(block)) visit(PositionRange{begin, end});
    }
  } else {
    visit(window);
  }
}

/// Whether a candidate that is within eps counts for this left point.
__device__ inline bool is_wanted(const JoinView& join, std::uint32_t position,
                                 std::uint32_t candidate) {
  if (!join.self_join) return true;
  if (candidate == position) return join.pairs == PairSelection::kAll;
  if (!join.smaller_id_first) return true;
  return counts_at_left(join.left.ids, position, candidate);
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

/// Calls visit(candidate, is_candidate) on all threads of the group together, for every candidate
/// of a point that the sink wants to be compared; others get is_candidate = false.
template <class T, std::uint32_t G, class Sink, class Visit>
__device__ void walk_point(const JoinView& join, const Group<G>& group, std::uint32_t position,
                           Sink& sink, const Visit& visit) {
  for_windows<T, G>(join, group, position, [&](const PositionRange& window) {
    for_wanted(sink, window, [&](const PositionRange& part) {
      for_candidates<G>(group, part, [&](std::uint32_t candidate, bool is_candidate) {
        if constexpr (requires { sink.wants(candidate); })
          visit(candidate, is_candidate && sink.wants(candidate));
        else
          visit(candidate, is_candidate);
      });
    });
  });
}

/// Walks a stretch: the whole of a kernel.
template <Metric M, class T, std::uint32_t D, std::uint32_t G, PairSink Sink>
__device__ void walk_stretch(const JoinView& join, const Stretch& stretch, bool queue, Sink& sink) {
  unsigned long long candidates = 0;
  if constexpr (requires { sink.start(); }) sink.start();
  for_points<G>(
      join, stretch, queue,
      [&](const Group<G>& group, std::uint32_t place, std::uint32_t position) {
        if constexpr (requires { sink.begin(place, position); })
          sink.begin(place - stretch.base, position);
        if constexpr (requires { sink.wants_point(); })
          if (!sink.wants_point()) return;
        const Query<T, D> query(join.left, position, join.dims);
        [[maybe_unused]] std::uint32_t entries = 0;
        walk_point<T, G>(
            join, group, position, sink, [&](std::uint32_t candidate, bool is_candidate) {
              double raw = 0;
              const auto is_pair = [&] {
                ++candidates;
                raw = raw_to<M, T, D>(join, query, candidate);
                return raw <= join.threshold && is_wanted(join, position, candidate);
              };
              const auto distance = [&] {
                return Sink::kNeed == PairNeed::kDistance ? distance_from_raw(M, raw) : 0.0;
              };
              if constexpr (Sink::kNeed == PairNeed::kNumber) {
                if (is_candidate) entries += is_pair();
              } else if constexpr (requires { sink.take_together(group, true, candidate, raw); }) {
                const bool found = is_candidate && is_pair();
                sink.take_together(group, found, candidate, distance());
              } else if (is_candidate && is_pair()) {
                sink.take(position, candidate, distance());
              }
            });
        if constexpr (Sink::kNeed == PairNeed::kNumber)
          sink.take_number(group, place - stretch.base, entries);
        if constexpr (requires { sink.end(group); }) sink.end(group);
      });
  if constexpr (requires { sink.finish(candidates); }) sink.finish(candidates);
}

template <Metric M, class T, std::uint32_t D, std::uint32_t G, PairSink Sink>
__global__ void __launch_bounds__(kBlockThreads,
                                  Sink::kNeed == PairNeed::kNumber ? kCountingBlocks : 0)
    walk_kernel(JoinView join, Stretch stretch, bool queue, Sink sink) {
  walk_stretch<M, T, D, G>(join, stretch, queue, sink);
}

/// Walks a stretch by the kernel that dispatched(launch) launches. `what` names the launch in
/// errors.
template <PairSink Sink, class Dispatched>
void launch_walk(const KernelChoice& choice, const JoinView& join, const Stretch& stretch,
                 const Sink& sink, const char* what, cudaStream_t stream,
                 const Dispatched& dispatched) {
  if (choice.queue)
    check(cudaMemcpyAsync(stretch.next, &stretch.first, sizeof stretch.first,
                          cudaMemcpyHostToDevice, stream),
          "starting the work queue");
  dispatched([&]<Metric M, class T, std::uint32_t D, std::uint32_t G>() {
    walk_kernel<M, T, D, G><<<blocks_for_stretch(choice, stretch), kBlockThreads, 0, stream>>>(
        join, stretch, choice.queue, sink);
  });
  check_launch(what);
}

/// Walks a stretch by the kernel of the choice.
template <PairSink Sink>
void launch_walk(const KernelChoice& choice, const JoinView& join, const Stretch& stretch,
                 const Sink& sink, const char* what, cudaStream_t stream) {
  launch_walk(choice, join, stretch, sink, what, stream,
              [&](const auto& launch) { dispatch(choice, launch); });
}

}  // namespace gpujoin::cuda
