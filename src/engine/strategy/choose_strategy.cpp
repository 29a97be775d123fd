#include "engine/strategy/choose_strategy.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <new>
#include <vector>

#include "engine/strategy/bit_strategy.h"
#include "engine/strategy/box_strategy.h"
#include "engine/strategy/length_classes.h"
#include "engine/strategy/planner.h"
#include "engine/strategy/reference_points.h"

namespace gpujoin {
namespace {

// Weighing reference points takes about a millisecond itself.
constexpr double kWorthReferencePointsMs = 10;

bool are_all_slow(const std::vector<Strategy>& plans) {
  return std::all_of(plans.begin(), plans.end(), [](const Strategy& plan) {
    return plan.estimate().ms > kWorthReferencePointsMs;
  });
}

void explain(Strategy& strategy, double left_rows, double right_rows, bool asked, bool futile) {
  if (strategy.index == IndexMethod::kNone) {
    std::snprintf(strategy.reason, sizeof strategy.reason,
                  asked    ? "brute force, as gpujoin.index asks"
                  : futile ? "brute force is quicker than choosing an index"
                           : "no column separates the points at this eps");
    return;
  }
  std::snprintf(strategy.reason, sizeof strategy.reason,
                "about %.3g candidates a point expected of %.3g points",
                strategy.estimate().candidates / std::max(1.0, left_rows), right_rows);
}

/// Whether most pairs are never compared, so that a join costs about as much as reading the scores
/// and indexing some of the rows.
bool looks_at_few_pairs(TopkMethod method) {
  return method == TopkMethod::kAuto || method == TopkMethod::kThreshold;
}

double estimate_boxes_ms(const JoinRequest& request) {
  try {
    return choose_box_strategy(request).ms;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

/// What finding so many neighbours in a tree takes: leaves around a left point, or in many
/// dimensions all.
double estimate_nearest_ms(const JoinRequest& request, std::uint64_t neighbors,
                           const WalkCosts& costs) {
  constexpr double kLeafPoints = 32, kPointNs = 500, kNeighborNs = 30;
  const auto rows = static_cast<double>(request.right().rows);
  if (is_of_bits(request.metric())) return estimate_bits_ms(request);
  const double leaves = std::pow(3.0, request.left().dims);
  const auto k = static_cast<double>(neighbors);
  const double looked_at = std::min(rows, leaves * (kLeafPoints + k));
  const double ns = kPointNs + kNeighborNs * k +
                    looked_at * (costs.candidate + costs.dimension * request.left().dims);
  return static_cast<double>(request.left().rows) * ns / 1e6;
}

}  // namespace

AccessPattern pattern_of(const JoinRequest& request, IndexMethod index) {
  // Two datasets are not symmetric.
  if (!request.self_join()) return AccessPattern::kFull;
  const AccessPattern asked = request.knobs.access_pattern;
  const bool may_be_full = request.pairs() != PairSelection::kUnordered;
  // Sums per row belong to the left point.
  if (request.output() == Output::kSums) return AccessPattern::kFull;
  // Clusters are symmetric.
  if (request.output() == Output::kClusters) return AccessPattern::kLinearId;
  // Half of a matrix of tiles serves counts as well, and so do passes over bits.
  if (index == IndexMethod::kTiles || index == IndexMethod::kPigeonhole)
    return asked == AccessPattern::kFull && may_be_full ? asked : AccessPattern::kLinearId;
  // Counts per row belong to the left point.
  if (request.output() == Output::kCountPerRow) return AccessPattern::kFull;
  if (asked != AccessPattern::kAuto && may_be_full) return asked;
  return asked == AccessPattern::kUnicomp ? asked : AccessPattern::kLinearId;
}

Strategy choose_strategy(const JoinRequest& request, const WalkCosts& costs) {
  if (is_of_bits(request.metric())) return choose_bit_strategy(request).strategy;
  Planner planner(request, costs);
  const auto left_rows = static_cast<double>(request.left().rows);
  const auto right_rows = static_cast<double>(request.right().rows);
  const IndexMethod asked = request.knobs.index;

  std::vector<Strategy> plans;
  if (asked == IndexMethod::kNone || planner.is_futile()) {
    plans.push_back(planner.plan_none());
  } else if (asked == IndexMethod::kTiles && planner.knows_tiles()) {
    plans.push_back(planner.plan_tiles());
  } else if (asked == IndexMethod::kReferencePoints) {
    plans.push_back(planner.plan_reference_points());
  } else {
    plans.push_back(planner.plan_grid());
    if (asked == IndexMethod::kAuto) {
      if (planner.wants_tiles()) plans.push_back(planner.plan_tiles());
      if (most_reference_points(request) > 0 && are_all_slow(plans))
        plans.push_back(planner.plan_reference_points());
      const Strategy& grid = plans.front();
      // An index that leaves most pairs is not worth its building.
      if (grid.grid_dims == 0 && grid.estimate().candidates > 0.9 * left_rows * right_rows)
        plans.push_back(planner.plan_none());
    }
  }
  Strategy best = plans.front();
  for (const Strategy& plan : plans) {
    const bool useless = best.index == IndexMethod::kGrid && plan.index == IndexMethod::kNone;
    if (useless || plan.estimate().ms < best.estimate().ms) best = plan;
  }
  for (const Strategy& plan : plans) best.estimates[static_cast<int>(plan.index)] = plan.estimate();
  explain(best, left_rows, right_rows, asked == best.index, planner.is_futile());
  return best;
}

bool are_keys_worth(const JoinRequest& request, double pair_ns) {
  constexpr std::uint32_t kGridDims = 2;  // where no other index than a grid is worth its while
  if (request.left().dims <= kGridDims) return true;
  try {
    const LengthClasses classes = choose_length_classes(request, kCoreWalkCosts);
    const double with_ms =
        classes.bounds.empty() ? choose_strategy(request).estimate().ms : classes.ms;
    const Strategy bare = choose_strategy(without_keys(request));
    const double threads = request.resources.threads;
    return with_ms / threads <= bare.estimate().ms / threads + bare.estimated_pairs * pair_ns / 1e6;
  } catch (const std::bad_alloc&) {
    return true;
  }
}

bool is_for_cores(const JoinRequest& request) {
  if (request.metric() == Metric::kJaccard ||
      (is_of_bits(request.metric()) && request.output() == Output::kNearest))
    return true;
  if (request.metric() != Metric::kHamming || !check_request(request).ok()) return false;
  try {
    return choose_strategy(request).index == IndexMethod::kPigeonhole;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

double estimate_core_ms(const JoinRequest& request, double enough_ms) {
  const auto left_rows = static_cast<double>(request.left().rows);
  const auto right_rows = static_cast<double>(request.right().rows);
  if (!check_request(request).ok() || left_rows == 0 || right_rows == 0) return 0;
  // A search for one row uses the index that is kept, or builds it for the searches that follow.
  const bool is_indexed = left_rows == 1 && request.right().key.identity != 0;
  const double index_ms =
      kCoreIndexNs / 1e6 * (left_rows + (request.self_join() || is_indexed ? 0 : right_rows));
  if (request.output() == Output::kTopPairs && looks_at_few_pairs(request.knobs.topk_method))
    return index_ms;
  if (request.shape() == Shape::kBoxes) return estimate_boxes_ms(request);
  if (request.output() == Output::kNearest)
    return index_ms + estimate_nearest_ms(request, request.neighbors(), kCoreWalkCosts);
  // Core distances, and rounds that together take about as long [Boruvka].
  if (is_of_spanning_tree(request.output()))
    return index_ms + 2 * estimate_nearest_ms(request, request.min_points(), kCoreWalkCosts);
  const double brute_force_ms = most_brute_force_ms(request, kCoreWalkCosts);
  if (index_ms + brute_force_ms < enough_ms) return index_ms + brute_force_ms;
  try {
    return index_ms + choose_strategy(request).estimate().ms;
  } catch (const std::bad_alloc&) {
    return index_ms;
  }
}

}  // namespace gpujoin
