#include "engine/strategy/cluster_requests.h"

#include "engine/strategy/planner.h"

namespace gpujoin {

bool are_tiles_worth_for_clusters(const JoinRequest& request, const WalkCosts& costs) {
  constexpr double kManyMs = 2;
  // Tiles are walked twice. Points that are all within eps, and core points that have found enough
  // neighbors, take cells less than the estimate.
  constexpr double kMargin = 8;
  if (request.metric() != Metric::kL2 || request.left().dims <= kMaxClusterGrid) return false;
  if (most_brute_force_ms(request, costs) < kManyMs) return false;
  const double cells_ms = choose_strategy(cluster_cells_request(request), costs).estimate().ms;
  if (cells_ms < kManyMs) return false;
  return kMargin * choose_strategy(cluster_tiles_request(request), costs).estimate().ms < cells_ms;
}

}  // namespace gpujoin
