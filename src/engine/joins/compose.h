// How an engine's joins are made of other joins, the same for every engine: clusters by a key are
// joins of clusters, duplicates are made of pairs, and the best pairs are found in rounds.
#pragma once

#include <memory>

#include "engine/joins/join.h"
#include "engine/joins/topk_join.h"

namespace gpujoin {

/// What an engine opens by itself, of rows that may lie in a file unless it says otherwise. They
/// throw what the engine's table turns into a Status, a request that they cannot serve included.
struct EngineJoins {
  OpenJoin pairs;      ///< pairs, counts and sums, of points or bits
  OpenJoin top_pairs;  ///< the best pairs, in one round
  OpenJoin nearest;
  OpenJoin clusters;  ///< without keys
  OpenJoin trees;     ///< of rows in memory
  OpenJoin boxes;
  PlainJoinCosts top_costs;  ///< of top_pairs
  bool rounds_of_files;      ///< the best pairs by distance of rows in a file are found in rounds
};

/// Opens the join of a valid request. Throws what they throw.
std::unique_ptr<Join> compose(const JoinRequest& request, const EngineJoins& joins);

}  // namespace gpujoin
