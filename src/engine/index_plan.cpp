#include "engine/index_plan.h"

#include <vector>

#include "core/cosine.h"
#include "engine/directions.h"

namespace gpujoin {
namespace {

/// The sampled rows of the request, or their directions.
struct SampledPoints {
  std::vector<float> left_directions, right_directions;
  JoinRequest request;
};

SampledPoints sampled_points(const JoinRequest& request) {
  SampledPoints points;
  points.request = in_memory(request);
  if (request.metric != Metric::kCosine) return points;
  const std::uint32_t dims = request.left.dims;
  const auto directions = [&](const Dataset& data, std::vector<float>& kept) {
    std::vector<std::uint64_t> rows = sample_rows(data.rows);
    return sampled_directions(data, dims, rows, kept);
  };
  const Dataset left = directions(points.request.left, points.left_directions);
  const Dataset right =
      request.self_join ? Dataset{} : directions(points.request.right, points.right_directions);
  points.request = join_of_directions(points.request, left, right);
  return points;
}

}  // namespace

IndexPlan plan_index(const JoinRequest& request, const Strategy& strategy, const IndexForm& form,
                     bool any_direction) {
  const SampledPoints points = sampled_points(request);
  const JoinRequest& indexed = points.request;
  IndexPlan plan{.strategy = strategy,
                 .directions = request.metric == Metric::kCosine,
                 .metric = indexed.metric,
                 .eps = any_direction ? kAnyDirection : indexed.eps,
                 .threshold = {},
                 .references = place_reference_points(indexed, strategy),
                 .reach = 0,
                 .order = {}};
  plan.threshold = make_threshold(plan.metric, plan.eps);
  const bool single = form.single_distances && indexed.left.scalar == ScalarType::kFloat32;
  plan.reach = plan.references.count == 0
                   ? plan.threshold.reach
                   : reference_reach(plan.eps, indexed.left.dims, plan.references.frame, single);
  // Tiles are sorted along a curve through cells as small as can be.
  const double cell_reach = strategy.index == IndexMethod::kTiles ? 0 : plan.reach;
  const GridGeometry grid =
      make_grid(strategy.grid_dims, strategy.grid_columns, strategy.grid_ranges, cell_reach);
  plan.order = make_sort_layout(grid, strategy.cell_order, strategy.sort_column,
                                strategy.sort_range, form.value_bits);
  return plan;
}

}  // namespace gpujoin
