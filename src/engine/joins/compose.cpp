#include "engine/joins/compose.h"

#include "engine/joins/duplicates_join.h"
#include "engine/joins/keyed_clusters.h"

namespace gpujoin {
namespace {

/// Bits have no smaller radii that a round could begin with, and scores in a file no strata.
bool has_rounds(const JoinRequest& request, const EngineJoins& joins) {
  if (is_of_bits(request.metric())) return false;
  return !request.sides.in_file() ||
         (joins.rounds_of_files && request.top().scoring.function == ScoreFunction::kDistance);
}

}  // namespace

std::unique_ptr<Join> compose(const JoinRequest& request, const EngineJoins& joins) {
  if (request.shape() == Shape::kBoxes) return joins.boxes(request);
  if (is_of_spanning_tree(request.output())) {
    require_rows_in_memory(request);
    return joins.trees(request);
  }
  switch (request.output()) {
    case Output::kNearest:
      return joins.nearest(request);
    case Output::kClusters:
      if (request.keys.count == 0) return joins.clusters(request);
      require_rows_in_memory(request);
      return std::make_unique<KeyedClusters>(request, joins.clusters);
    case Output::kDuplicates:
      return std::make_unique<DuplicatesJoin>(request, joins.pairs);
    case Output::kTopPairs:
      if (!has_rounds(request, joins)) return joins.top_pairs(request);
      return open_topk_join(request, joins.top_pairs, joins.top_costs);
    default:
      return joins.pairs(request);
  }
}

}  // namespace gpujoin
