// What a spanning tree is expected to cost, in rounds of [Boruvka]. The unit is what a point of a
// round costs.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace gpujoin {

/// What a search for the nearest points of a point costs: the more dimensions there are, the more
/// nodes it meets.
inline std::uint64_t spanning_search_work(std::uint32_t dims) { return 8 * std::uint64_t{dims}; }

/// How many rounds are left where there are so many components: most rounds leave a quarter.
inline std::uint64_t spanning_rounds(std::uint64_t components) {
  return std::max(1, static_cast<int>(std::bit_width(components)) / 2);
}

}  // namespace gpujoin
