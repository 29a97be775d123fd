#include "core/shared_clusters.h"
#include "cuda/clusters/cluster_tile_kernels.h"
#include "cuda/clusters/labels.cuh"
#include "cuda/device/kernel_helpers.cuh"
#include "cuda/tiles/tile_counting.cuh"
#include "cuda/tiles/tile_decision.cuh"
#include "cuda/tiles/tile_listing.cuh"

namespace gpujoin::cuda {
namespace {

/// Whether the point at a position is a core point; what fills up the last tile is none.
__device__ bool is_core(const ClusterTilesView& view, std::uint32_t point) {
  return (view.cores[point / 32] >> point % 32 & 1) != 0;
}

/// Whether two tiles have core points of one cluster each, and nothing else.
__device__ bool are_one(const ClusterTilesView& view, uint2 tile) {
  return view.states[tile.x] == TileState::kOne && view.states[tile.y] == TileState::kOne;
}

/// Whether the clusters of two such tiles are the same.
__device__ bool have_one_root(const ClusterTilesView& view, uint2 tile) {
  return find_root(view.labels, tile.x * kScreenTile) ==
         find_root(view.labels, tile.y * kScreenTile);
}

/// Which tiles matter while neighbours are counted (AllTiles).
struct CountedTiles {
  ClusterTilesView view;

  __device__ bool leave_out(uint2 tile) const {
    return view.states[tile.x] == TileState::kFull && view.states[tile.y] == TileState::kFull;
  }
  __device__ bool take_whole(uint2) const { return true; }
};

/// And while points are united: of tiles all of whose pairs are within eps one pair suffices, if no
/// border point is among them.
struct UnitedTiles {
  ClusterTilesView view;

  __device__ bool leave_out(uint2 tile) const {
    if (are_one(view, tile)) return have_one_root(view, tile);
    return view.states[tile.x] == TileState::kEmpty && view.states[tile.y] == TileState::kEmpty;
  }
  __device__ bool take_whole(uint2 tile) const {
    if (!are_one(view, tile)) return false;
    unite(view.labels, tile.x * kScreenTile, tile.y * kScreenTile);
    return true;
  }
};

/// The tiles that matter, but for those on the diagonal, which have had their turn.
template <class Tiles>
struct AboveDiagonal {
  Tiles tiles;

  __device__ bool leave_out(uint2 tile) const { return tile.x == tile.y || tiles.leave_out(tile); }
  __device__ bool take_whole(uint2 tile) const { return tiles.take_whole(tile); }
};

/// Counts pairs at both their points.
struct NeighborCountSink : CountSink {
  std::uint32_t enough;

  __device__ bool wants(std::uint32_t i, std::uint32_t j) const {
    return !is_full(i) || !is_full(j);
  }
  __device__ unsigned long long open(const ScreenWarp& warp, uint2 tile,
                                     const ScreenWarp::Passed& passed) const {
    const unsigned long long open = passed.all & ~passed.sure;
    if (open == 0) return 0;
    const auto full = [this](std::uint32_t point) { return is_full(point); };
    return open & ~(warp.sums_of_rows(tile, full) & warp.sums_of_columns(tile, full));
  }

 private:
  __device__ bool is_full(std::uint32_t point) const {
    return point >= to.points ||
           *static_cast<const volatile std::uint32_t*>(to.counts + point) >= enough;
  }
};

/// Unites core points, and offers them to their neighbours that are none. What such a neighbour
/// follows stands in its link, which no one else touches: the core point found so far, whose
/// distance is computed again where another one is offered. There are fewer offers than
/// neighbours of a core point.
struct UnionSink {
  static constexpr PairNeed kNeed = PairNeed::kDistance;
  ClusterTilesView view;
  Decision decision;

  __device__ bool wants(std::uint32_t i, std::uint32_t j) const {
    const bool left = is_core(i), right = is_core(j);
    if (left && right) return find_root(view.labels, i) != find_root(view.labels, j);
    return left || right;
  }
  __device__ void take(std::uint32_t i, std::uint32_t j, double distance) const {
    const bool left = is_core(i), right = is_core(j);
    if (left && right)
      unite(i, j);
    else if (right)
      offer(i, j, distance);
    else if (left)
      offer(j, i, distance);
  }
  __device__ void take_many(const ScreenWarp& warp, uint2 tile, unsigned long long pairs,
                            unsigned long long) const {
    pairs &= cores_of_rows(warp, tile) & cores_of_columns(warp, tile);
    if (are_one(view, tile)) {
      const unsigned lanes = __ballot_sync(~0u, pairs != 0);
      const bool first = lanes != 0 && threadIdx.x % 32 == static_cast<unsigned>(__ffs(lanes)) - 1;
      pairs = first ? pairs & -pairs : 0;  // one suffices
    }
    for (; pairs != 0; pairs &= pairs - 1) {
      const uint2 pair = warp.first_pair(tile, pairs);
      unite(pair.x, pair.y);
    }
  }
  /// Border points need distances, which the definition tells.
  __device__ unsigned long long open(const ScreenWarp& warp, uint2 tile,
                                     const ScreenWarp::Passed& passed) const {
    const unsigned long long rows = cores_of_rows(warp, tile);
    const unsigned long long columns = cores_of_columns(warp, tile);
    unsigned long long apart = passed.all & ~passed.sure & rows & columns;
    if (apart != 0 && are_one(view, tile)) {
      if (have_one_root(view, tile)) apart = 0;
    } else {
      for (unsigned long long pairs = apart; pairs != 0; pairs &= pairs - 1) {
        const uint2 pair = warp.first_pair(tile, pairs);
        if (find_root(view.labels, pair.x) == find_root(view.labels, pair.y))
          apart &= ~(pairs & -pairs);
      }
    }
    return apart | (passed.all & (rows ^ columns));
  }

  /// Likewise what another device has found (core/shared_clusters.h).
  __device__ bool is_core(std::uint32_t point) const { return cuda::is_core(view, point); }
  __device__ void unite(std::uint32_t core, std::uint32_t other) const {
    cuda::unite(view.labels, core, other);
  }
  __device__ void offer(std::uint32_t point, std::uint32_t core) const {
    offer(point, core, distance_to(point, core));
  }

 private:
  __device__ unsigned long long cores_of_rows(const ScreenWarp& warp, uint2 tile) const {
    return warp.sums_of_rows(tile, [this](std::uint32_t point) { return is_core(point); });
  }
  __device__ unsigned long long cores_of_columns(const ScreenWarp& warp, uint2 tile) const {
    return warp.sums_of_columns(tile, [this](std::uint32_t point) { return is_core(point); });
  }

  /// Distances are roots already, so that they are in the order of neighbours as they are.
  __device__ void offer(std::uint32_t point, std::uint32_t core, double distance) const {
    std::uint32_t known = load_link(view.labels, point);
    for (;;) {
      if (known != point &&
          !is_followed_before<Metric::kL1>(view.borders, Neighbor{distance, core},
                                           Neighbor{distance_to(point, known), known}, view.ids))
        return;
      const std::uint32_t seen = atomicCAS(view.labels.links + point, known, core);
      if (seen == known) break;
      known = seen;
    }
    view.labels.roles[point] = ClusterRole::kBorder;
  }
  __device__ double distance_to(std::uint32_t point, std::uint32_t core) const {
    return distance_from_raw(decision.metric, raw_by_definition(decision, point, core));
  }
};

/// One thread block of kScreenTile threads for each tile.
__global__ void __launch_bounds__(kScreenTile) full_kernel(ClusterTilesView view) {
  const std::uint32_t tile = blockIdx.x;
  const std::uint64_t point = global_thread();
  if (view.states[tile] == TileState::kFull) return;
  const bool full = point >= view.points || view.counts[point] >= view.enough ||
                    std::uint64_t{view.counts[point]} + view.whole[tile] >= view.enough;
  if (__syncthreads_and(full) && threadIdx.x == 0) view.states[tile] = TileState::kFull;
}

/// Likewise.
__global__ void __launch_bounds__(kScreenTile) one_kernel(ClusterTilesView view) {
  __shared__ std::uint32_t first_root;
  const std::uint32_t tile = blockIdx.x;
  const auto point = static_cast<std::uint32_t>(global_thread());
  if (view.states[tile] != TileState::kMixed) return;
  const bool there = point < view.points, core = there && is_core(view, point);
  if (!__syncthreads_or(core)) {
    if (threadIdx.x == 0) view.states[tile] = TileState::kEmpty;
    return;
  }
  if (!__syncthreads_and(core || !there)) return;
  const std::uint32_t root = there ? find_root(view.labels, point) : kNoPoint;
  if (threadIdx.x == 0) first_root = root;
  __syncthreads();
  if (__syncthreads_and(root == first_root || !there) && threadIdx.x == 0)
    view.states[tile] = TileState::kOne;
}

/// Whole warps: a word of `cores` each.
__global__ void roles_kernel(ClusterTilesView view) {
  const std::uint64_t position = global_thread();
  const bool point = position < view.points;
  const bool core =
      point
          ? std::uint64_t{view.counts[position]} + view.whole[position / kScreenTile] >= view.enough
          : view.enough == 1;
  if (position < view.labels.rows) {
    view.labels.links[position] = static_cast<std::uint32_t>(position);
    view.labels.roles[position] = core ? ClusterRole::kCore : ClusterRole::kNoise;
  }
  const unsigned cores = __ballot_sync(~0u, point && core);
  if (position % 32 == 0 && position < std::uint64_t{view.tiles} * kScreenTile)
    view.cores[position / 32] = cores;
}

__global__ void neighbors_to_add_kernel(ClusterTilesView view, const std::uint32_t* common) {
  const std::uint64_t point = global_thread();
  if (point >= view.points) return;
  const std::uint32_t counted = view.counts[point] + view.whole[point / kScreenTile];
  view.counts[point] = neighbors_to_add(counted, common != nullptr ? common[point] : 0);
}

__global__ void add_neighbors_kernel(ClusterTilesView view, const std::uint32_t* found) {
  const std::uint64_t point = global_thread();
  if (point < view.points) view.counts[point] += found[point];
}

__global__ void merge_links_kernel(UnionSink clusters, const std::uint32_t* links) {
  const std::uint64_t point = global_thread();
  if (point < clusters.view.points)
    merge_link(clusters, static_cast<std::uint32_t>(point), links[point]);
}

/// Lists tiles with themselves.
template <class Tiles>
__global__ void __launch_bounds__(kBlockThreads)
    diagonal_kernel(Tiles tiles, std::uint32_t first, std::uint32_t end, std::uint32_t points,
                    TileList list, unsigned long long* screened) {
  const auto tile = static_cast<std::uint32_t>(first + global_thread());
  const bool listed = tile < end && !tiles.leave_out(uint2{tile, tile});
  unsigned long long pairs = 0;
  if (listed) {
    const std::uint64_t a = min(kScreenTile, points - tile * kScreenTile);
    pairs = a * (a - 1) / 2;
  }
  append_tile(list, uint2{tile, tile}, listed);
  add_over_block(pairs, screened);
}

template <class Tiles>
void list_chosen(const Tiles& tiles, const TileChoice& choice, const ClusterSlice& slice,
                 unsigned long long* screened) {
  if (choice.diagonal) {
    diagonal_kernel<<<blocks_for(choice.end - choice.first), kBlockThreads, 0, slice.stream>>>(
        tiles, choice.first, choice.end, choice.points.points, slice.list, screened);
    return check_launch("listing tiles");
  }
  list_tiles(choice.points, choice.points, true, choice.box_columns, choice.reach, choice.whole,
             AboveDiagonal<Tiles>{tiles}, choice.rectangle, slice.list, screened, slice.stream);
}

template <class Sink>
void compare(const Sink& sink, const ClusterSlice& slice) {
  screen(slice.screen, slice.list, PairCounter{slice.decision, slice.open, sink},
         slice.multiprocessors, slice.stream);
  decide(slice.decision, slice.open, sink, slice.multiprocessors, slice.stream);
}

}  // namespace

void launch_count_neighbors(const ClusterTilesView& view, const TileChoice& choice,
                            const ClusterSlice& slice, unsigned long long* screened) {
  full_kernel<<<view.tiles, kScreenTile, 0, slice.stream>>>(view);
  check_launch("counting neighbours");
  list_chosen(CountedTiles{view}, choice, slice, screened);
  const TileCounts counts{TileCounts::Ends::kBoth, nullptr, view.points, view.counts};
  compare(NeighborCountSink{{counts}, view.enough}, slice);
}

void launch_roles(const ClusterTilesView& view, cudaStream_t stream) {
  const std::uint64_t positions =
      std::max<std::uint64_t>(view.labels.rows, std::uint64_t{view.tiles} * kScreenTile);
  if (positions == 0) return;
  roles_kernel<<<blocks_for(positions), kBlockThreads, 0, stream>>>(view);
  check_launch("finding core points");
}

void launch_unite_tiles(const ClusterTilesView& view, const TileChoice& choice,
                        const ClusterSlice& slice, unsigned long long* screened) {
  one_kernel<<<view.tiles, kScreenTile, 0, slice.stream>>>(view);
  check_launch("uniting clusters");
  list_chosen(UnitedTiles{view}, choice, slice, screened);
  compare(UnionSink{view, slice.decision}, slice);
}

void launch_neighbors_to_add(const ClusterTilesView& view, const std::uint32_t* common,
                             cudaStream_t stream) {
  neighbors_to_add_kernel<<<blocks_for(view.points), kBlockThreads, 0, stream>>>(view, common);
  check_launch("adding neighbours");
}

void launch_add_neighbors(const ClusterTilesView& view, const std::uint32_t* found,
                          cudaStream_t stream) {
  add_neighbors_kernel<<<blocks_for(view.points), kBlockThreads, 0, stream>>>(view, found);
  check_launch("adding neighbours");
}

void launch_merge_links(const ClusterTilesView& view, const Decision& decision,
                        const std::uint32_t* links, cudaStream_t stream) {
  merge_links_kernel<<<blocks_for(view.points), kBlockThreads, 0, stream>>>(
      UnionSink{view, decision}, links);
  check_launch("merging clusters");
}

}  // namespace gpujoin::cuda
