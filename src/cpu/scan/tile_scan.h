// The innermost loop of dense tiles: groups of points against each other by their dot products in
// single precision, as register-blocked matrix arithmetic. A screen, whose thresholds and proof
// stand in core/tile_screen.h. No threads, no allocation.
#pragma once

#include <bit>
#include <cstdint>

#include "core/byte_screen.h"

namespace gpujoin::cpu {

/// Points are packed in groups of 32: the first columns of 32 points, then their second columns,
/// and so on.
inline constexpr std::uint32_t kGroupPoints = 32;

/// A screen compares its sums with thresholds at each checkpoint. The last checkpoint compares
/// whole sums. The others are short circuits (SHORTC [GPU-Join, section 4.4]).
struct Checkpoints {
  static constexpr std::uint32_t kMost = 20;
  std::uint32_t count;
  std::uint32_t end[kMost];  ///< [count] columns in the sums; ascending
};

/// Points to a group's numbers.
struct PackedGroup {
  const float* values;      ///< [dims][kGroupPoints]
  const float* thresholds;  ///< [checkpoints + 1][kGroupPoints]: to reject at each checkpoint, then
                            ///< to accept
};

/// Calls visit(bit) for the bits that are set.
template <class Visit>
void for_bits(std::uint32_t bits, const Visit& visit) {
  for (; bits != 0; bits &= bits - 1) visit(static_cast<std::uint32_t>(std::countr_zero(bits)));
}

/// What a screen finds about each pair of points in two groups: bit j of element i is point j of
/// the second group against point i of the first.
struct GroupPairs {
  std::uint32_t possible[kGroupPoints];  ///< not rejected
  std::uint32_t sure[kGroupPoints];      ///< and surely within eps
};

/// Screens two groups. Returns whether any pair is possible; if none is, *pairs is not set.
using GroupScreen = bool (*)(const Checkpoints& checkpoints, const PackedGroup& a,
                             const PackedGroup& b, GroupPairs* pairs);

GroupScreen choose_group_screen();

/// Screens one point against a group in bytes (core/byte_screen.h). `point`: [columns] integers,
/// `values`: [columns][kGroupPoints], `norms`: [kGroupPoints]. Bit j of the result: the pair with
/// point j of the group is possible.
using ByteScreen = std::uint32_t (*)(const float* point, const std::int8_t* values,
                                     const float* norms, std::uint32_t columns,
                                     const ByteThreshold& threshold);

ByteScreen choose_byte_screen();

}  // namespace gpujoin::cpu
