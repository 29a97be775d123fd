// For every set of lanes of a tile, its members in order: what turns a comparison mask into
// positions.
#pragma once

#include <array>
#include <cstdint>

namespace gpujoin::cpu {

/// [mask * 8 + i] is the i-th lowest bit set in mask; places past the last are 0.
inline constexpr std::array<std::uint8_t, 256 * 8> kLanesOfMask = [] {
  std::array<std::uint8_t, 256 * 8> lanes{};
  for (unsigned mask = 0; mask < 256; ++mask) {
    unsigned count = 0;
    for (std::uint8_t lane = 0; lane < 8; ++lane)
      if (mask >> lane & 1) lanes[mask * 8 + count++] = lane;
  }
  return lanes;
}();

}  // namespace gpujoin::cpu
