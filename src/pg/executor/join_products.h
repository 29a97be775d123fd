// Points that are compared by inner products.
#pragma once

#include "pg/executor/join_node.h"

namespace gpujoin {

/// Lifts the points of both sides, which were read, where they are compared by inner products.
void lift_sides(JoinNode* node);

/// The band of the engine's distances for a radius of the test, of which both sides are known.
EpsBand band_within(const JoinNode* node, const SimilarityTest& test, double eps);

}  // namespace gpujoin
