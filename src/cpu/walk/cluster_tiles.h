// Clusters of points by tiles, for many columns and for cosine distance: one walk counts neighbours
// until there are min_points of them, another one unites core points. Tiles and groups of points
// whose counts are full, or that are one cluster already, are not compared.
#pragma once

#include "cpu/walk/tile_walker.h"

namespace gpujoin::cpu {

/// Finds the clusters of the plan's points and puts them into the queue. Half a walk.
void find_clusters(const TilePlan& plan, const WalkTools& tools);

}  // namespace gpujoin::cpu
