// The search of a k-d tree for several points at a time, one in each lane of a vector, with vector
// instructions: a node is visited where some lane needs it, and lists are kept without a jump that
// would be guessed wrong. It selects; the definition, and what it leaves open, are the caller's.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/distance.h"
#include "cpu/index/kd_tree.h"
#include "engine/request/dataset.h"

namespace gpujoin::cpu {

inline constexpr std::uint32_t kMostLanes = 8;

/// A neighbour as a double in the order of raw distances: the upper half of a raw distance's bits,
/// and below them the neighbour's position.
struct NeighborKey {
  static constexpr std::uint64_t kNoPosition = 0xffffffff;

  static double of(double raw, std::uint64_t position) {
    const auto bits = std::bit_cast<std::uint64_t>(raw);
    return std::bit_cast<double>((bits & ~kNoPosition) | position);
  }
  explicit NeighborKey(double key) : bits(std::bit_cast<std::uint64_t>(key)) {}

  std::uint32_t position() const { return static_cast<std::uint32_t>(bits); }
  bool is_none() const { return position() == kNoPosition; }
  /// Whether every raw distance with this key is larger than those with another one, and by more
  /// than distances that are equal, rounded, can differ.
  bool surely_follows(NeighborKey other) const { return bits >> 32 >= (other.bits >> 32) + 2; }
  /// No raw distance with this key is larger.
  double most_raw() const { return std::bit_cast<double>(bits | kNoPosition); }

  std::uint64_t bits;
};

/// Lower bounds on the raw distances of a node, by lane.
struct LaneVisit {
  alignas(64) double raws[kMostLanes];
  std::uint32_t node;
};

/// The points that are looked for, their lists, and memory to work in. Arrays are aligned to cache
/// lines.
struct LaneSearch {
  static constexpr std::uint32_t kNowhere = ~0u;
  static constexpr std::size_t kPassedRoom = kMostLeafPoints * kMostLanes;

  const KdTree* tree;
  std::uint32_t k;
  double most_raw;           ///< of neighbours, finite
  double* queries;           ///< [dims][lanes]
  std::uint32_t own;         ///< the first lane's position, others follow: no neighbours of
                             ///< themselves. Or kNowhere
  double* found;             ///< [k + 1][lanes] keys, the least first; then some that are none
  double* passed;            ///< [kPassedRoom][lanes] work
  LaneVisit* visits;         ///< [levels of the tree] work
  std::uint64_t candidates;  ///< pairs compared, added up
};

struct LaneKernel {
  std::uint32_t lanes;
  /// Finds the k neighbours of least keys, and one more that does not surely follow them where
  /// there is any.
  void (*search)(LaneSearch& search);
};

/// `dims` is at most kMaxDirectDimensions.
LaneKernel choose_lane_kernel(Metric metric, std::uint32_t dims);

}  // namespace gpujoin::cpu
