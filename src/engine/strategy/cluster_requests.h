// How clusters are asked for: by which index, which Output::kClusters leaves to the engine.
#pragma once

#include <algorithm>

#include "core/cluster.h"
#include "engine/request/request.h"
#include "engine/strategy/choose_strategy.h"

namespace gpujoin {

/// The same clusters, by an index whose points lie in the cells that plan_index() has for clusters,
/// a cell's points unsorted and cells in linear order.
inline JoinRequest cluster_cells_request(JoinRequest request) {
  Knobs& knobs = request.knobs;
  knobs.index = IndexMethod::kGrid;
  knobs.indexed_dimensions = std::min(request.left().dims, kMaxClusterGrid);
  knobs.sort_unindexed = Switch::kOff;
  knobs.cell_order = CellOrder::kLinear;
  request.sides = Sides::one(request.left(), PairSelection::kDistinct);
  return request;
}

/// The same clusters, by tiles.
inline JoinRequest cluster_tiles_request(JoinRequest request) {
  Knobs& knobs = request.knobs;
  knobs.index = IndexMethod::kTiles;
  knobs.indexed_dimensions = 0;
  knobs.sort_unindexed = Switch::kOff;
  knobs.cell_order = CellOrder::kAuto;
  request.sides = Sides::one(request.left(), PairSelection::kDistinct);
  return request;
}

/// The same clusters, of bits, by whichever index.
inline JoinRequest cluster_bits_request(JoinRequest request) {
  request.sides = Sides::one(request.left(), PairSelection::kDistinct);
  return request;
}

/// Returns whether tiles find L2 clusters in much less time than cells. Cells have up to three
/// columns, so with more columns a cell may hold many points that are far apart. Throws
/// std::bad_alloc.
bool are_tiles_worth_for_clusters(const JoinRequest& request, const WalkCosts& costs);

}  // namespace gpujoin
