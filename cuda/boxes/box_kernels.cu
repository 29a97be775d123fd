#include <algorithm>

#include "cuda/boxes/box_kernels.h"
#include "cuda/boxes/box_search.cuh"
#include "cuda/device/kernel_helpers.cuh"
#include "cuda/device/tuning.h"

namespace gpujoin::cuda {
namespace {

template <class T>
__global__ void ranges_kernel(BoxJoinView join, bool first_side, PositionRange* ranges) {
  const std::uint64_t place = global_thread();
  if (place >= join.places) return;
  const std::uint64_t position = join.first + place;
  PositionRange range{0, 0};
  if (position < *join.probing.boxes) {
    const T* const lows = static_cast<const T*>(join.probing.columns) +
                          std::uint64_t{join.dimension} * join.probing.rows;
    const T* const highs = lows + std::uint64_t{join.dims} * join.probing.rows;
    const T* const others = static_cast<const T*>(join.indexed.columns) +
                            std::uint64_t{join.dimension} * join.indexed.rows;
    range = boxes_above(others, *join.indexed.boxes, lows[position], highs[position],
                        join.test.reach, first_side);
  }
  ranges[place] = range;
}

/// Runs task(place, number) for each place of a launch: places first .. end - 1 of a list or,
/// without a list, of all places. A group of threads takes a place.
template <std::uint32_t G, class Task>
__device__ void for_places(const BoxJoinView& join, std::uint32_t first, std::uint32_t end,
                           const std::uint32_t* list, const Task& task) {
  const BoxGroup<G> group = cg::tiled_partition<G>(cg::this_thread_block());
  const std::uint64_t groups = global_threads() / G;
  for (std::uint64_t number = first + global_thread() / G; number < end; number += groups) {
    if (group.any(must_stop(join))) return;
    const auto i = static_cast<std::uint32_t>(number);
    task(group, list != nullptr ? list[i] : i, i);
  }
}

/// How many rows of the result a pair stands for.
__device__ unsigned orders_of_pair(const BoxJoinView& join, std::uint32_t position,
                                   std::uint32_t other) {
  return join.mirrored && join.probing.order[position] != join.indexed.order[other] ? 2 : 1;
}

template <BoxMethod M, class T, std::uint32_t D>
__global__ void __launch_bounds__(kBlockThreads)
    count_kernel(BoxJoinView join, std::uint32_t* counts, BoxTotals* totals) {
  unsigned long long pairs = 0, candidates = 0;
  const std::uint32_t boxes = *join.probing.boxes;
  for_places<kBoxGroup<M>>(
      join, 0, join.places, nullptr,
      [&](const BoxGroup<kBoxGroup<M>>& group, std::uint32_t place, std::uint32_t) {
        std::uint32_t found = 0;
        if (std::uint64_t{join.first} + place < boxes) {
          const std::uint32_t position = join.first + place;
          const Box<T, D> box =
              load_box<T, D>(join.probing.columns, join.probing.rows, position, join.dims);
          walk_box<M>(join, group, place, box, [&](std::uint32_t other, bool is_candidate) {
            if (!is_candidate) return;
            ++candidates;
            const Box<T, D> partner =
                load_box<T, D>(join.indexed.columns, join.indexed.rows, other, join.dims);
            if (!is_pair(join, box, partner) || !is_wanted<M, T>(join, position, other)) return;
            ++found;
            pairs += orders_of_pair(join, position, other);
          });
        }
        if (counts == nullptr) return;
        found = cg::reduce(group, found, cg::plus<std::uint32_t>());
        if (group.thread_rank() == 0) counts[place] = found;
      });
  add_over_block(pairs, &totals->pairs);
  add_over_block(candidates, &totals->candidates);
}

template <BoxMethod M, class T, std::uint32_t D>
__global__ void __launch_bounds__(kBlockThreads)
    fill_kernel(BoxJoinView join, const std::uint32_t* chosen, Stretch stretch, FillRange range) {
  for_places<kBoxGroup<M>>(
      join, stretch.first, stretch.end, chosen,
      [&](const BoxGroup<kBoxGroup<M>>& group, std::uint32_t place, std::uint32_t number) {
        const std::uint32_t position = join.first + place;
        const Box<T, D> box =
            load_box<T, D>(join.probing.columns, join.probing.rows, position, join.dims);
        std::uint64_t next = range.offsets[number - stretch.base];
        walk_box<M>(join, group, place, box, [&](std::uint32_t other, bool is_candidate) {
          bool found = false;
          if (is_candidate) {
            const Box<T, D> partner =
                load_box<T, D>(join.indexed.columns, join.indexed.rows, other, join.dims);
            found = is_pair(join, box, partner) && is_wanted<M, T>(join, position, other);
          }
          const unsigned members = group.ballot(found);
          const std::uint64_t pair = next + __popc(members & ((1u << group.thread_rank()) - 1));
          if (found && pair >= range.first_pair && pair < range.end_pair)
            range.neighbors[pair - range.first_pair] = join.indexed.order[other];
          next += __popc(members);
        });
      });
}

/// The nested loop [thesis, section 4.1]: one thread for each box.
template <class T, std::uint32_t D>
__global__ void __launch_bounds__(kNestedThreads)
    count_all_kernel(BoxJoinView join, std::uint32_t* counts, BoxTotals* totals) {
  const std::uint64_t place = global_thread();
  const bool mine = place < join.places && join.first + place < *join.probing.boxes;
  const auto position = static_cast<std::uint32_t>(join.first + place);
  Box<T, D> box{};
  if (mine) box = load_box<T, D>(join.probing.columns, join.probing.rows, position, join.dims);
  unsigned long long pairs = 0, candidates = 0;
  std::uint32_t found = 0;
  visit_all<T, D>(join, [&](const Box<T, D>& partner, std::uint32_t other) {
    if (!mine) return;
    ++candidates;
    if (!is_pair(join, box, partner) || !is_wanted<BoxMethod::kNone, T>(join, position, other))
      return;
    ++found;
    pairs += orders_of_pair(join, position, other);
  });
  if (counts != nullptr && place < join.places) counts[place] = found;
  add_over_block<kNestedThreads>(pairs, &totals->pairs);
  add_over_block<kNestedThreads>(candidates, &totals->candidates);
}

template <class T, std::uint32_t D>
__global__ void __launch_bounds__(kNestedThreads)
    fill_all_kernel(BoxJoinView join, const std::uint32_t* chosen, Stretch stretch,
                    FillRange range) {
  const std::uint64_t number = stretch.first + global_thread();
  const bool mine = number < stretch.end;
  Box<T, D> box{};
  std::uint32_t position = 0;
  std::uint64_t next = 0;
  if (mine) {
    position = join.first + chosen[number];
    box = load_box<T, D>(join.probing.columns, join.probing.rows, position, join.dims);
    next = range.offsets[number - stretch.base];
  }
  visit_all<T, D>(join, [&](const Box<T, D>& partner, std::uint32_t other) {
    if (!mine || !is_pair(join, box, partner) ||
        !is_wanted<BoxMethod::kNone, T>(join, position, other))
      return;
    if (next >= range.first_pair && next < range.end_pair)
      range.neighbors[next - range.first_pair] = join.indexed.order[other];
    ++next;
  });
}

/// Calls launch.template operator()<T, D>() for the type and dimensions of a join.
template <class T, class Launch>
void dispatch_dims(std::uint32_t dims, const Launch& launch) {
  switch (dims) {
    case 1:
      return launch.template operator()<T, 1>();
    case 2:
      return launch.template operator()<T, 2>();
    case 3:
      return launch.template operator()<T, 3>();
    case 4:
      return launch.template operator()<T, 4>();
    default:
      return launch.template operator()<T, 0>();
  }
}

template <class Launch>
void dispatch(const BoxJoinView& join, const Launch& launch) {
  if (join.scalar == ScalarType::kFloat32)
    dispatch_dims<float>(join.dims, launch);
  else
    dispatch_dims<double>(join.dims, launch);
}

/// Thread blocks that give each place a group of threads, or loop over places where there are many:
/// each thread block ends with atomic operations on the same few words.
template <BoxMethod M>
unsigned blocks_of_groups(std::uint32_t places) {
  return std::min(blocks_for(std::uint64_t{places} * kBoxGroup<M>), 1u << 14);
}

}  // namespace

void launch_ranges(const BoxJoinView& join, bool first_side, PositionRange* ranges,
                   cudaStream_t stream) {
  const unsigned blocks = blocks_for(join.places);
  if (join.scalar == ScalarType::kFloat32)
    ranges_kernel<float><<<blocks, kBlockThreads, 0, stream>>>(join, first_side, ranges);
  else
    ranges_kernel<double><<<blocks, kBlockThreads, 0, stream>>>(join, first_side, ranges);
  check_launch("ranking boxes");
}

void launch_count_boxes(const BoxJoinView& join, std::uint32_t* counts, BoxTotals* totals,
                        cudaStream_t stream) {
  dispatch(join, [&]<class T, std::uint32_t D>() {
    if (join.method == BoxMethod::kLayeredGrid)
      count_kernel<BoxMethod::kLayeredGrid, T, D>
          <<<blocks_of_groups<BoxMethod::kLayeredGrid>(join.places), kBlockThreads, 0, stream>>>(
              join, counts, totals);
    else if (join.method == BoxMethod::kSortSweep)
      count_kernel<BoxMethod::kSortSweep, T, D>
          <<<blocks_of_groups<BoxMethod::kSortSweep>(join.places), kBlockThreads, 0, stream>>>(
              join, counts, totals);
    else
      count_all_kernel<T, D>
          <<<blocks_for(join.places, kNestedThreads), kNestedThreads, 0, stream>>>(join, counts,
                                                                                   totals);
  });
  check_launch("counting pairs of boxes");
}

void launch_fill_boxes(const BoxJoinView& join, const std::uint32_t* chosen, const Stretch& stretch,
                       const FillRange& range, cudaStream_t stream) {
  const std::uint32_t places = stretch.end - stretch.first;
  dispatch(join, [&]<class T, std::uint32_t D>() {
    if (join.method == BoxMethod::kLayeredGrid)
      fill_kernel<BoxMethod::kLayeredGrid, T, D>
          <<<blocks_of_groups<BoxMethod::kLayeredGrid>(places), kBlockThreads, 0, stream>>>(
              join, chosen, stretch, range);
    else if (join.method == BoxMethod::kSortSweep)
      fill_kernel<BoxMethod::kSortSweep, T, D>
          <<<blocks_of_groups<BoxMethod::kSortSweep>(places), kBlockThreads, 0, stream>>>(
              join, chosen, stretch, range);
    else
      fill_all_kernel<T, D><<<blocks_for(places, kNestedThreads), kNestedThreads, 0, stream>>>(
          join, chosen, stretch, range);
  });
  check_launch("writing pairs of boxes");
}

}  // namespace gpujoin::cuda
