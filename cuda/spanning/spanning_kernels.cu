#include "core/ordered_bits.h"
#include "cuda/clusters/labels.cuh"
#include "cuda/device/kernel_helpers.cuh"
#include "cuda/spanning/spanning_kernels.h"

namespace gpujoin::cuda {
namespace {

constexpr unsigned kSearchThreads = 128;

/// Distances are not negative, so that their bits are in their order.
__device__ double load_distance(const double* distance) {
  return *static_cast<const volatile double*>(distance);
}

__device__ void lower_distance(double* distance, double x) {
  if (x < load_distance(distance))
    atomicMin(reinterpret_cast<unsigned long long*>(distance),
              static_cast<unsigned long long>(__double_as_longlong(x)));
}

/// Looks at the stop word now and then, and counts candidates.
struct Looks {
  const unsigned* stop;
  unsigned leaves = 0, candidates = 0;

  __device__ bool goes_on(std::uint32_t points) {
    constexpr unsigned kLooks = 64;
    candidates += points;
    if (++leaves % kLooks != 0) return true;
    return *static_cast<const volatile unsigned*>(stop) == 0;
  }
};

/// What find_first_edge() asks for: the component's first distance, which other threads lower.
struct DeviceBoard {
  double* distance;
  Looks& looks;

  __device__ double bound() const { return load_distance(distance); }
  __device__ void offer(double x) const { lower_distance(distance, x); }
  __device__ bool goes_on(std::uint32_t points) const { return looks.goes_on(points); }
};

/// The coordinates of a point: D of them in registers, or any number in memory.
template <std::uint32_t D>
struct QueryPoint {
  double x[D];
  __device__ QueryPoint(const BoxTree& tree, std::uint32_t position) {
#pragma unroll
    for (std::uint32_t d = 0; d < D; ++d) x[d] = tree.point(position)[d];
  }
};

template <>
struct QueryPoint<0> {
  const double* x;
  __device__ QueryPoint(const BoxTree& tree, std::uint32_t position) : x(tree.point(position)) {}
};

/// One point a thread. K: the room for its numbers; 0: in memory.
template <Metric M, std::uint32_t D, std::uint32_t K>
__global__ void __launch_bounds__(kSearchThreads) cores_kernel(SpanningView view, CoreSlice slice) {
  const std::uint64_t place = global_thread();
  Looks looks{view.stop};
  if (place < slice.count && *static_cast<const volatile unsigned*>(view.stop) == 0) {
    const std::uint32_t position = slice.first + static_cast<std::uint32_t>(place);
    double own[K > 0 ? K : 1];
    double* const numbers = K > 0 ? own : slice.numbers + place * slice.k;
    const QueryPoint<D> query(view.tree(), position);
    const auto goes_on = [&looks](std::uint32_t points) { return looks.goes_on(points); };
    CoreTaker taker(numbers, slice.k, position, goes_on);
    search_box_tree<M, D>(view.tree(), query.x, taker);
    view.cores[position] = distance_from_raw(M, taker.raw());
  }
  add_over_block<kSearchThreads>(looks.candidates, &view.report->candidates);
}

/// One point that searches a thread.
template <Metric M, std::uint32_t D>
__global__ void __launch_bounds__(kSearchThreads) edges_kernel(SpanningView view) {
  const std::uint64_t place = global_thread();
  Looks looks{view.stop};
  if (place < view.report->open && *static_cast<const volatile unsigned*>(view.stop) == 0) {
    const std::uint32_t position = view.open[place];
    const QueryPoint<D> query(view.tree(), position);
    DeviceBoard board{view.table.first_distances + view.components[position], looks};
    const FoundEdge found = find_first_edge<M, D>(view.table.points, position, query.x, board);
    view.table.keep(position, found);
  }
  add_over_block<kSearchThreads>(looks.candidates, &view.report->candidates);
}

__global__ void rank_keys_kernel(const std::int64_t* ids, std::uint32_t rows, std::uint64_t* keys,
                                 std::uint32_t* numbers) {
  const std::uint64_t row = global_thread();
  if (row >= rows) return;
  if (keys != nullptr) keys[row] = static_cast<std::uint64_t>(ids[row]) ^ kSignBit;
  numbers[row] = static_cast<std::uint32_t>(row);
}

__global__ void positions_of_rows_kernel(const std::uint32_t* order, std::uint32_t rows,
                                         std::uint32_t* position_of_row) {
  const std::uint64_t position = global_thread();
  if (position < rows) position_of_row[order[position]] = static_cast<std::uint32_t>(position);
}

__global__ void ranks_kernel(const std::uint32_t* rows_by_rank,
                             const std::uint32_t* position_of_row, std::uint32_t rows,
                             std::uint32_t* positions, std::uint32_t* ranks) {
  const std::uint64_t rank = global_thread();
  if (rank >= rows) return;
  const std::uint32_t position = position_of_row[rows_by_rank[rank]];
  positions[rank] = position;
  ranks[position] = static_cast<std::uint32_t>(rank);
}

__global__ void components_kernel(SpanningView view) {
  const std::uint64_t at = global_thread();
  if (at >= view.tree().points) return;
  const auto point = static_cast<std::uint32_t>(at);
  view.components[point] = point;
  view.labels.links[point] = point;
  view.table.begin(point);
}

__global__ void leaf_facts_kernel(SpanningView view) {
  const BoxTree& tree = view.tree();
  const std::uint64_t at = global_thread();
  if (at >= tree.leaves()) return;
  const auto leaf = static_cast<std::uint32_t>(at);
  NodeFacts all = no_facts();
  for (std::uint32_t p = tree.begin(leaf), end = tree.begin(leaf + 1); p < end; ++p)
    if (view.table.has_core(p))
      all = together(all, {view.cores[p], view.table.points.ranks[p], view.components[p]});
  view.facts[tree.leaves() + leaf] = all;
}

/// One node of a level a thread.
__global__ void facts_kernel(SpanningView view, std::uint32_t first) {
  const std::uint64_t at = global_thread();
  if (at >= first) return;  // a level has as many nodes as its first's number
  const std::uint64_t node = first + at;
  view.facts[node] = together(view.facts[2 * node], view.facts[2 * node + 1]);
}

__global__ void begin_kernel(SpanningView view) {
  const std::uint64_t point = global_thread();
  if (point == 0) view.report->open = 0;
  if (point >= view.tree().points) return;
  view.table.first_distances[point] = kNoTreeEdge.distance;
  view.table.first_ends[point] = kNoTreeEdge.ends;
}

/// Offers what is left of earlier rounds.
__global__ void offer_kernel(SpanningView view) {
  const std::uint64_t at = global_thread();
  if (at >= view.tree().points) return;
  const auto point = static_cast<std::uint32_t>(at);
  if (view.table.offers(point))
    lower_distance(view.table.first_distances + view.components[point],
                   view.table.distances[point]);
}

/// Lists the points that may have an edge before what is known.
__global__ void __launch_bounds__(kBlockThreads) open_kernel(SpanningView view) {
  const std::uint64_t at = global_thread();
  const auto point = static_cast<std::uint32_t>(at);
  const bool open = at < view.tree().points && view.table.is_open(point);
  const unsigned members = __ballot_sync(~0u, open);
  if (members == 0) return;
  const unsigned lane = threadIdx.x % 32;
  unsigned place = 0;
  if (lane == 0) place = atomicAdd(&view.report->open, __popc(members));
  place = __shfl_sync(~0u, place, 0) + __popc(members & ((1u << lane) - 1));
  if (open) view.open[place] = point;
}

/// The first edge among those that have a component's first distance.
__global__ void ends_kernel(SpanningView view) {
  const std::uint64_t at = global_thread();
  if (at >= view.tree().points) return;
  const auto point = static_cast<std::uint32_t>(at);
  if (!view.table.is_as_short(point)) return;
  const std::uint64_t ends = view.table.ends[point];
  std::uint64_t* const first = view.table.first_ends + view.components[point];
  if (ends < *static_cast<volatile std::uint64_t*>(first))
    atomicMin(reinterpret_cast<unsigned long long*>(first), ends);
}

/// Edges are in an order of their own, so the first ones close no circle, but for those that two
/// components have in common, of which one is found united already.
__global__ void merge_kernel(SpanningView view) {
  const std::uint64_t at = global_thread();
  if (at >= view.tree().points) return;
  const auto component = static_cast<std::uint32_t>(at);
  const TreeEdge edge{view.table.first_distances[component], view.table.first_ends[component]};
  if (edge.ends == kNoTreeEdge.ends) return;
  const std::uint32_t* const positions = view.table.positions;
  if (!unite(view.labels, positions[edge.first()], positions[edge.second()])) return;
  const unsigned place = atomicAdd(&view.report->edges, 1u);
  view.edge_distances[place] = edge.distance;
  view.edge_ends[place] = edge.ends;
}

__global__ void roots_kernel(SpanningView view) {
  const std::uint64_t point = global_thread();
  if (point < view.tree().points)
    view.components[point] = find_root(view.labels, static_cast<std::uint32_t>(point));
}

__global__ void rows_of_edges_kernel(std::uint64_t* ends, std::uint32_t edges,
                                     const std::uint32_t* rows_by_rank) {
  const std::uint64_t at = global_thread();
  if (at >= edges) return;
  const TreeEdge edge{0, ends[at]};
  ends[at] = std::uint64_t{rows_by_rank[edge.first()]} << 32 | rows_by_rank[edge.second()];
}

/// Calls launch.template operator()<M, D>() for the metric and the columns of the tree.
template <class Launch>
void dispatch_tree(const EdgePoints& points, const Launch& launch) {
  if (points.metric == Metric::kL1) return launch.template operator()<Metric::kL1, 0>();
  if (points.metric == Metric::kLInf) return launch.template operator()<Metric::kLInf, 0>();
  switch (points.tree.stride) {
    case 2:
      return launch.template operator()<Metric::kL2, 2>();
    case 3:
      return launch.template operator()<Metric::kL2, 3>();
    case 4:
      return launch.template operator()<Metric::kL2, 4>();
    case 8:
      return launch.template operator()<Metric::kL2, 8>();
    default:
      return launch.template operator()<Metric::kL2, 0>();
  }
}

/// Once components are known.
void launch_facts(const SpanningView& view, cudaStream_t stream) {
  leaf_facts_kernel<<<blocks_for(view.tree().leaves()), kBlockThreads, 0, stream>>>(view);
  for (std::uint32_t level = view.tree().levels; level-- > 0;) {
    const std::uint32_t first = 1u << level;
    facts_kernel<<<blocks_for(first), kBlockThreads, 0, stream>>>(view, first);
  }
  check_launch("looking at a tree");
}

}  // namespace

std::uint32_t padded_tree_columns(Metric metric, std::uint32_t dims) {
  if (metric != Metric::kL2 || dims > 8) return dims;
  return dims <= 2 ? 2 : dims <= 4 ? dims : 8;
}

void launch_rank_keys(const std::int64_t* ids, std::uint32_t rows, std::uint64_t* keys,
                      std::uint32_t* numbers, cudaStream_t stream) {
  rank_keys_kernel<<<blocks_for(rows), kBlockThreads, 0, stream>>>(ids, rows, keys, numbers);
  check_launch("ordering rows");
}

void launch_positions_of_rows(const std::uint32_t* order, std::uint32_t rows,
                              std::uint32_t* position_of_row, cudaStream_t stream) {
  positions_of_rows_kernel<<<blocks_for(rows), kBlockThreads, 0, stream>>>(order, rows,
                                                                           position_of_row);
  check_launch("ordering rows");
}

void launch_ranks(const std::uint32_t* rows_by_rank, const std::uint32_t* position_of_row,
                  std::uint32_t rows, std::uint32_t* positions, std::uint32_t* ranks,
                  cudaStream_t stream) {
  ranks_kernel<<<blocks_for(rows), kBlockThreads, 0, stream>>>(rows_by_rank, position_of_row, rows,
                                                               positions, ranks);
  check_launch("ordering rows");
}

void launch_cores(const SpanningView& view, const CoreSlice& slice, cudaStream_t stream) {
  dispatch_tree(view.table.points, [&]<Metric M, std::uint32_t D>() {
    const unsigned blocks = blocks_for(slice.count, kSearchThreads);
    if (slice.k <= kOwnCoreNumbers)
      cores_kernel<M, D, kOwnCoreNumbers><<<blocks, kSearchThreads, 0, stream>>>(view, slice);
    else
      cores_kernel<M, D, 0><<<blocks, kSearchThreads, 0, stream>>>(view, slice);
  });
  check_launch("looking for core distances");
}

void launch_components(const SpanningView& view, cudaStream_t stream) {
  components_kernel<<<blocks_for(view.tree().points), kBlockThreads, 0, stream>>>(view);
  check_launch("finding components");
}

void launch_round(const SpanningView& view, cudaStream_t stream) {
  const std::uint32_t points = view.tree().points;
  const unsigned blocks = blocks_for(points);
  begin_kernel<<<blocks, kBlockThreads, 0, stream>>>(view);
  launch_facts(view, stream);
  offer_kernel<<<blocks, kBlockThreads, 0, stream>>>(view);
  open_kernel<<<blocks, kBlockThreads, 0, stream>>>(view);
  dispatch_tree(view.table.points, [&]<Metric M, std::uint32_t D>() {
    edges_kernel<M, D><<<blocks_for(points, kSearchThreads), kSearchThreads, 0, stream>>>(view);
  });
  ends_kernel<<<blocks, kBlockThreads, 0, stream>>>(view);
  merge_kernel<<<blocks, kBlockThreads, 0, stream>>>(view);
  roots_kernel<<<blocks, kBlockThreads, 0, stream>>>(view);
  check_launch("looking for edges");
}

void launch_rows_of_edges(std::uint64_t* ends, std::uint32_t edges,
                          const std::uint32_t* rows_by_rank, cudaStream_t stream) {
  if (edges == 0) return;
  rows_of_edges_kernel<<<blocks_for(edges), kBlockThreads, 0, stream>>>(ends, edges, rows_by_rank);
  check_launch("naming edges");
}

}  // namespace gpujoin::cuda
