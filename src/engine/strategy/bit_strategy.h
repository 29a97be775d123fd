// The choice of how rows of bits find each other, from a sample of them, and why: every pair is
// compared, or those that agree in segments of their bits (core/hamming.h). Shared by the engines;
// choosing never changes the result.
#pragma once

#include <cstdint>
#include <vector>

#include "core/hamming.h"
#include "engine/request/strategy.h"

namespace gpujoin {

/// Bits in disjoint segments, in `equal` of which a pair within the radius agrees at least. Any
/// disjoint segments do; bits in none of them are compared like the others.
struct BitSegments {
  std::uint32_t count = 0;  ///< 0: every pair is compared
  std::uint32_t equal = 0;
  std::vector<std::uint64_t> masks;  ///< [count][words]

  /// Choices of `equal` segments, one a pass.
  std::uint64_t passes() const { return static_cast<std::uint64_t>(sets_of(equal, count)); }
};

/// The bits that two rows of a pair may differ in at most.
std::uint32_t most_differing_bits(const JoinRequest& request);

/// What comparing every pair takes.
double estimate_bits_ms(const JoinRequest& request);

struct BitStrategy {
  BitSegments segments;
  Strategy strategy;  ///< the same for EXPLAIN and for estimates
};

/// Chooses from a sample of rows that are in memory. An index that the request asks for is taken:
/// kNone and kTiles compare every pair, kPigeonhole as few as it can. Deterministic for the same
/// request. Throws std::bad_alloc.
BitStrategy choose_bit_strategy(const JoinRequest& request);

}  // namespace gpujoin
