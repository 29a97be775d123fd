// The kernels that find clusters by dense tiles, launched: neighbours are counted, core points are
// united, and border points follow, by sinks of the walk of tiles (cuda/tiles).
#pragma once

#include <cstdint>

#include "core/border_rule.h"
#include "cuda/clusters/cluster_labels.h"
#include "cuda/tiles/tile_kernels.h"

namespace gpujoin::cuda {

/// What is known of all points of a tile.
enum class TileState : std::uint8_t {
  kMixed,  ///< nothing; what memory of zeros holds
  kFull,   ///< while neighbours are counted: they have enough
  kOne,    ///< while points are united: they are core points of one cluster
  kEmpty,  ///< likewise: there is no core point
};

/// Passed to kernels by value. Points are named by position.
struct ClusterTilesView {
  std::uint32_t points, tiles;
  std::uint32_t enough;  ///< neighbours of a core point, itself counted
  BorderRule borders;
  const std::int64_t* ids;
  std::uint32_t* counts;  ///< [points] neighbours so far, itself counted, but for those of `whole`
  std::uint32_t* whole;   ///< [tiles] more neighbours of each of a tile's points
  std::uint32_t* cores;   ///< [tiles][kScreenTile / 32] a bit for each point: it is a core point
  TileState* states;      ///< [tiles]
  Labels labels;
};

/// What a slice works with.
struct ClusterSlice {
  const ScreenView& screen;
  const Decision& decision;
  TileList list;
  CandidateList open;  ///< room for the pairs that the screen does not decide
  int multiprocessors;
  cudaStream_t stream;
};

/// Which pairs of tiles a slice lists: those of the tiles first .. end - 1 with themselves, or
/// those above the diagonal of a rectangle, whose boxes may hold pairs.
struct TileChoice {
  bool diagonal;
  std::uint32_t first, end;
  TileRectangle rectangle;
  const TilePoints& points;
  std::uint32_t box_columns;
  double reach;
  WholeTiles whole;
};

// All work in the order of the stream, and throw CudaError.

/// Sets the states of tiles, counts neighbours of the points of chosen tiles, unless both have
/// enough, and adds to the slice's report: to *screened, to the size of the list and to the totals.
void launch_count_neighbors(const ClusterTilesView& view, const TileChoice& choice,
                            const ClusterSlice& slice, unsigned long long* screened);

/// After all are counted: which points are core points, each of which is its own cluster. Rows that
/// are not finite have no neighbour but themselves.
void launch_roles(const ClusterTilesView& view, cudaStream_t stream);

/// Likewise unites core points near each other, unless they are one cluster, and offers them to
/// their neighbours that are none.
void launch_unite_tiles(const ClusterTilesView& view, const TileChoice& choice,
                        const ClusterSlice& slice, unsigned long long* screened);

// Where devices share the walks (core/shared_clusters.h), all arrays [points]:

/// After a device has counted: counts become what it adds; `common` may be null, for 0.
void launch_neighbors_to_add(const ClusterTilesView& view, const std::uint32_t* common,
                             cudaStream_t stream);

/// counts[i] += found[i].
void launch_add_neighbors(const ClusterTilesView& view, const std::uint32_t* found,
                          cudaStream_t stream);

/// After a device has united points: merges the links of another one.
void launch_merge_links(const ClusterTilesView& view, const Decision& decision,
                        const std::uint32_t* links, cudaStream_t stream);

}  // namespace gpujoin::cuda
