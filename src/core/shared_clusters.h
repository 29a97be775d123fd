// Clusters that several walks find together (core/cluster.h). Each walk looks at some of the pairs;
// some that tell much, such as those of near points, each of them looks at for itself. For host and
// device.
//
// A walk may leave out a pair of two points that both have enough neighbours by its own count. The
// neighbours that all walks find are added up then: of a point whose sum is too small no walk has
// left out a pair, so that the sum is right. And one that has enough is found to have enough: where
// a walk left out a pair of it, its own count, without what others found alone, was enough.
#pragma once

#include <cstdint>

#include "core/portability.h"

namespace gpujoin {

/// A point's neighbours that a walk adds to the sum: those that it counted, but for those that each
/// walk counts for itself, which only the first walk adds. Its `common` is 0.
GPUJOIN_HD inline std::uint32_t neighbors_to_add(std::uint32_t counted, std::uint32_t common) {
  return counted - common;
}

/// Merges what another walk knows of a point into `clusters`: the point's link there, which is its
/// own where it is united with no earlier core point, or follows none.
///
///   bool is_core(std::uint32_t point);
///   void unite(std::uint32_t core, std::uint32_t other_core);
///   void offer(std::uint32_t point, std::uint32_t core);  to a point that is none
///
/// Links of all points unite what they unite there; and the core point that a border point follows
/// is the first of those that walks offer it.
template <class Clusters>
GPUJOIN_HD inline void merge_link(const Clusters& clusters, std::uint32_t point,
                                  std::uint32_t link) {
  if (link == point) return;
  if (clusters.is_core(point))
    clusters.unite(point, link);
  else
    clusters.offer(point, link);
}

}  // namespace gpujoin
