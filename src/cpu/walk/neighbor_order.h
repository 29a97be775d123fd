// The final order of a left point's neighbours.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/nearest.h"

namespace gpujoin::cpu {

/// Sorts by comes_before(). Few raw distances are so close that more than they decides.
template <Metric M>
void sort_neighbors(Neighbor* found, std::uint64_t size, const std::int64_t* ids) {
  std::sort(found, found + size,
            [](const Neighbor& a, const Neighbor& b) { return a.raw < b.raw; });
  for (std::uint64_t i = 1; i < size; ++i) {
    if (!comes_before<M>(found[i], found[i - 1], ids)) continue;
    const Neighbor* const place = std::upper_bound(
        found, found + i, found[i],
        [ids](const Neighbor& a, const Neighbor& b) { return comes_before<M>(a, b, ids); });
    std::rotate(found + (place - found), found + i, found + i + 1);
  }
}

/// But for kL2 all raw distances are distances.
inline void sort_neighbors(Metric metric, Neighbor* found, std::uint64_t size,
                           const std::int64_t* ids) {
  metric == Metric::kL2 ? sort_neighbors<Metric::kL2>(found, size, ids)
                        : sort_neighbors<Metric::kL1>(found, size, ids);
}

}  // namespace gpujoin::cpu
