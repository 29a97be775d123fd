#include "engine/strategy/index_plan.h"

#include "core/cluster.h"
#include "core/cosine.h"
#include "engine/strategy/directions.h"

namespace gpujoin {
namespace {

/// The grid of the strategy, where points that match differ by `reach` in columns that are no keys.
GridGeometry plan_grid(const JoinRequest& request, const Strategy& strategy, double reach) {
  double reaches[kMaxGridDimensions];
  bool equals[kMaxGridDimensions];
  Extent ranges[kMaxGridDimensions];
  const std::uint32_t dims = request.left().dims;
  const PairKeys& keys = request.keys;
  for (std::uint32_t d = 0; d < strategy.grid_dims; ++d) {
    const std::uint32_t key = strategy.grid_columns[d] - dims;  // wraps where the column is none
    const bool is_key = strategy.grid_columns[d] >= dims && key < keys.count;
    reaches[d] = is_key ? keys.reach[key] : reach;
    equals[d] = is_key && keys.reach[key] == 0;
    ranges[d] = equals[d] ? Extent{0, keys.most[key]} : strategy.grid_ranges[d];
  }
  return make_grid(strategy.grid_dims, strategy.grid_columns, ranges, reaches, equals);
}

/// Cells that a join's points are given; for clusters small ones where points are dense. Where few
/// points are around each, wide cells cost less: there are fewer of them.
ClusterCells choose_cells(const JoinRequest& request, const IndexPlan& plan,
                          const IndexForm& form) {
  constexpr double kFewCandidates = 64;  // in the wide cells around a point
  const ClusterCells wide{plan.reach, 1};
  if (request.output() != Output::kClusters) return wide;
  const double candidates =
      plan.strategy.estimate().candidates / static_cast<double>(request.left().rows);
  if (form.wide_cluster_cells && candidates < kFewCandidates) return wide;
  return make_cluster_cells(plan.metric, plan.strategy.grid_dims, plan.reach);
}

}  // namespace

bool index_decides(const SortLayout& order, std::uint32_t column) {
  if (order.sort_column == static_cast<std::int32_t>(column)) return true;
  for (std::uint32_t d = 0; d < order.grid.dims; ++d)
    if (order.grid.column[d] == column) return order.grid.alone[d] && order.grid.width[d] == 1;
  return false;
}

IndexPlan plan_index(const JoinRequest& request, const Strategy& strategy, const IndexForm& form,
                     bool any_direction) {
  const bool directions = request.metric() == Metric::kCosine;
  const IndexedSample sample(request);
  const JoinRequest& indexed = sample.request;
  IndexPlan plan{.strategy = strategy,
                 .directions = directions,
                 .metric = indexed.metric(),
                 .eps = any_direction ? kAnyDirection : indexed.eps(),
                 .sure_eps = !directions ? request.eps()
                             : any_direction
                                 ? -1
                                 : sure_direction_radius(request.eps(), indexed.left().dims),
                 .threshold = {},
                 .references = place_reference_points(indexed, strategy),
                 .reach = 0,
                 .cell_radius = 1,
                 .order = {},
                 .open_keys = 0};
  plan.threshold = make_threshold(plan.metric, plan.eps);
  const bool single = form.single_distances && indexed.left().scalar == ScalarType::kFloat32;
  plan.reach = plan.references.count == 0
                   ? plan.threshold.reach
                   : reference_reach(plan.eps, indexed.left().dims, plan.references.frame, single);
  // Tiles are sorted along a curve through cells as small as can be.
  const bool tiles = strategy.index == IndexMethod::kTiles;
  const ClusterCells cells = tiles ? ClusterCells{0, 1} : choose_cells(request, plan, form);
  plan.cell_radius = cells.radius;
  const GridGeometry grid = plan_grid(request, strategy, cells.reach);
  plan.order = make_sort_layout(grid, strategy.cell_order, strategy.sort_column,
                                strategy.sort_range, form.value_bits);
  for (std::uint32_t k = 0; k < request.keys.count; ++k)
    if (request.keys.is_interval(k) || !index_decides(plan.order, request.left().dims + k))
      plan.open_keys |= 1u << k;
  return plan;
}

}  // namespace gpujoin
