// How the points of a range join are indexed: the same for both sides and for all parts of them,
// and known from a sample before any side is, so that a side can be indexed once for several joins.
#pragma once

#include <cstdint>

#include "core/threshold.h"
#include "engine/request/request.h"
#include "engine/request/strategy.h"
#include "engine/strategy/reference_points.h"

namespace gpujoin {

struct IndexPlan {
  Strategy strategy;
  bool directions;  ///< the join is by cosine distance: the directions of points are indexed
  Metric metric;    ///< of what is indexed
  double eps;
  double sure_eps;  ///< pairs of what is indexed within this distance surely match; negative: none
  Threshold threshold;  ///< of metric and eps
  ReferencePoints references;
  double reach;  ///< how far points within eps differ in an indexed column at most, but for keys
  std::uint32_t
      cell_radius;  ///< how far cells of such points differ in a column of the grid at most
  SortLayout order;
  std::uint32_t
      open_keys;  ///< keys that the index does not decide, a bit each; see index_decides()
};

/// Whether keys that are not near each other have no points in one window: the column is sorted, so
/// that windows end where its keys do, or each of its keys has cells of its own.
bool index_decides(const SortLayout& order, std::uint32_t column);

/// What an engine does its own way.
struct IndexForm {
  std::uint32_t value_bits;  ///< of a sort value in a code, at most
  bool single_distances;     ///< of single-precision points, distances to reference points are too
  bool wide_cluster_cells;   ///< cells for clusters may be as wide as the reach
};

/// Plans the index of the strategy, which was chosen for the request. A join by cosine distance
/// indexes directions; `any_direction`: an extreme one is among them (core/cosine.h), so that every
/// distance is within the radius. Throws std::bad_alloc.
IndexPlan plan_index(const JoinRequest& request, const Strategy& strategy, const IndexForm& form,
                     bool any_direction = false);

}  // namespace gpujoin
