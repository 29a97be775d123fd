#include "engine/strategy/index_plan.h"

#include "core/cosine.h"
#include "engine/strategy/directions.h"

namespace gpujoin {

IndexPlan plan_index(const JoinRequest& request, const Strategy& strategy, const IndexForm& form,
                     bool any_direction) {
  const IndexedSample sample(request);
  const JoinRequest& indexed = sample.request;
  IndexPlan plan{.strategy = strategy,
                 .directions = request.metric() == Metric::kCosine,
                 .metric = indexed.metric(),
                 .eps = any_direction ? kAnyDirection : indexed.eps(),
                 .threshold = {},
                 .references = place_reference_points(indexed, strategy),
                 .reach = 0,
                 .order = {}};
  plan.threshold = make_threshold(plan.metric, plan.eps);
  const bool single = form.single_distances && indexed.left().scalar == ScalarType::kFloat32;
  plan.reach = plan.references.count == 0
                   ? plan.threshold.reach
                   : reference_reach(plan.eps, indexed.left().dims, plan.references.frame, single);
  // Tiles are sorted along a curve through cells as small as can be.
  const double cell_reach = strategy.index == IndexMethod::kTiles ? 0 : plan.reach;
  const GridGeometry grid =
      make_grid(strategy.grid_dims, strategy.grid_columns, strategy.grid_ranges, cell_reach);
  plan.order = make_sort_layout(grid, strategy.cell_order, strategy.sort_column,
                                strategy.sort_range, form.value_bits);
  return plan;
}

}  // namespace gpujoin
