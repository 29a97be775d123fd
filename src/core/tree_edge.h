// Edges of a spanning tree by mutual reachability distance, and their order, which makes the
// smallest such tree one. For host and device: no allocation, no state.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "core/portability.h"

namespace gpujoin {

/// Points have ranks, by which edges of one distance are ordered: by the smaller rank, then by the
/// larger one.
struct TreeEdge {
  double distance;     ///< never NaN
  std::uint64_t ends;  ///< the smaller rank in the upper half, the larger one in the lower half

  GPUJOIN_HD std::uint32_t first() const { return static_cast<std::uint32_t>(ends >> 32); }
  GPUJOIN_HD std::uint32_t second() const { return static_cast<std::uint32_t>(ends); }
};

/// An order of all edges: no two of them are equal, so there is one smallest spanning tree.
GPUJOIN_HD inline bool operator<(const TreeEdge& a, const TreeEdge& b) {
  return a.distance != b.distance ? a.distance < b.distance : a.ends < b.ends;
}

/// Edges beyond finite distances are none.
inline constexpr TreeEdge kNoTreeEdge = {DBL_MAX, ~std::uint64_t{0}};

/// Where one of the ranks is a lower bound on several, no edge with one of these comes before.
GPUJOIN_HD inline std::uint64_t edge_ends(std::uint32_t a, std::uint32_t b) {
  return a < b ? std::uint64_t{a} << 32 | b : std::uint64_t{b} << 32 | a;
}

/// The larger one of the core distances of two points and of their own distance [HDBSCAN].
GPUJOIN_HD inline double mutual_reachability(double a_core, double b_core, double distance) {
  const double core = a_core < b_core ? b_core : a_core;
  return core < distance ? distance : core;
}

/// What is known of the points of a tree's node that have a core distance.
struct NodeFacts {
  static constexpr std::uint32_t kSeveral = ~std::uint32_t{0};  ///< components
  static constexpr std::uint32_t kNone = kSeveral - 1;          ///< there is no such point

  double core;              ///< the smallest core distance
  std::uint32_t rank;       ///< the smallest rank
  std::uint32_t component;  ///< the one of all of them; of the round at hand
};

/// What holds for no points.
GPUJOIN_HD inline NodeFacts no_facts() { return {HUGE_VAL, ~std::uint32_t{0}, NodeFacts::kNone}; }

/// What holds for the points of two nodes together.
GPUJOIN_HD inline NodeFacts together(const NodeFacts& a, const NodeFacts& b) {
  NodeFacts both = {a.core < b.core ? a.core : b.core, a.rank < b.rank ? a.rank : b.rank,
                    NodeFacts::kSeveral};
  if (a.component == b.component || b.component == NodeFacts::kNone)
    both.component = a.component;
  else if (a.component == NodeFacts::kNone)
    both.component = b.component;
  return both;
}

}  // namespace gpujoin
