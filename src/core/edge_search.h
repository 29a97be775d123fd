// Searches of a tree of boxes for a spanning tree [Boruvka]: the core distance of a point, and the
// first edge that leads from it to another component. For host and device: no allocation, no state
// but their own.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "core/box_tree.h"
#include "core/nearest.h"
#include "core/portability.h"
#include "core/tree_edge.h"

namespace gpujoin {

/// The k smallest of some numbers, a heap with the largest on top, in memory of the caller's.
class SmallestNumbers {
 public:
  /// k >= 1.
  GPUJOIN_HD SmallestNumbers(double* numbers, std::uint32_t k) : numbers_(numbers), k_(k) {}

  GPUJOIN_HD bool is_full() const { return size_ == k_; }
  GPUJOIN_HD double largest() const { return numbers_[0]; }  ///< where it is not empty

  GPUJOIN_HD void offer(double x) {
    if (is_full()) {
      if (x < numbers_[0]) sink(x);
      return;
    }
    std::uint32_t at = size_++;
    for (; at > 0 && numbers_[(at - 1) / 2] < x; at = (at - 1) / 2)
      numbers_[at] = numbers_[(at - 1) / 2];
    numbers_[at] = x;
  }

 private:
  /// Puts x in the place of the top.
  GPUJOIN_HD void sink(double x) {
    std::uint32_t at = 0;
    for (std::uint32_t child = 1; child < size_; child = 2 * at + 1) {
      if (child + 1 < size_ && numbers_[child] < numbers_[child + 1]) ++child;
      if (!(x < numbers_[child])) break;
      numbers_[at] = numbers_[child];
      at = child;
    }
    numbers_[at] = x;
  }

  double* numbers_;
  std::uint32_t k_;
  std::uint32_t size_ = 0;
};

/// Takes what search_box_tree() finds, but for the point itself. Once there are k others only
/// nearer ones matter: of many at one distance none is looked for. `goes_on` is asked before each
/// leaf, as by search_box_tree().
template <class GoesOn>
class CoreTaker {
 public:
  GPUJOIN_HD CoreTaker(double* numbers, std::uint32_t k, std::uint32_t position,
                       const GoesOn& goes_on)
      : nearest_(numbers, k), position_(position), goes_on_(goes_on) {}

  GPUJOIN_HD double bound() const { return bound_; }
  GPUJOIN_HD bool goes_on(std::uint32_t points) { return goes_on_(points); }
  GPUJOIN_HD void take(std::uint32_t position, double raw) {
    if (position == position_ || !(raw <= bound_)) return;
    nearest_.offer(raw);
    if (nearest_.is_full()) bound_ = below(nearest_.largest());
  }

  /// Infinite where there are no k others at finite raw distances.
  GPUJOIN_HD double raw() const {
    return nearest_.is_full() ? nearest_.largest() : static_cast<double>(INFINITY);
  }

 private:
  GPUJOIN_HD static double below(double raw) { return raw > 0 ? nextafter(raw, -1.0) : -1; }

  SmallestNumbers nearest_;
  std::uint32_t position_;
  const GoesOn& goes_on_;
  double bound_ = DBL_MAX;
};

/// The points of a spanning tree in the making, by position in a tree of boxes.
struct EdgePoints {
  BoxTree tree;
  Metric metric;
  const NodeFacts* facts;           ///< [2 * leaves]
  const double* cores;              ///< [points] core distances; infinite: in no edge
  const std::uint32_t* ranks;       ///< [points]
  const std::uint32_t* components;  ///< [points]
};

/// What a search has found.
struct FoundEdge {
  TreeEdge edge;  ///< kNoTreeEdge: none that comes before what the board knew
  double least;   ///< no edge of the point out of its component is shorter

  /// Whether no edge of the point out of its component comes before.
  GPUJOIN_HD bool is_first() const {
    return edge.ends != kNoTreeEdge.ends && edge.distance == least;
  }
};

/// The first edge from a point to another component, unless it is longer than an edge out of the
/// point's component that is known meanwhile. Branch and bound: what is nearer first, no node of
/// the own component, and none all of whose edges come after the one found, by the distance of its
/// box, its smallest core distance and its smallest rank. So points of one place, all of whose
/// edges have one distance, take no more time than others. A board has
///
///   double bound() const;               the distance of an edge out of the component, or DBL_MAX
///   void offer(double distance);        of another one
///   bool goes_on(std::uint32_t points);  before each leaf with so many points
///
/// `query` has the point's coordinates.
template <Metric M, std::uint32_t D, class Board>
GPUJOIN_HD inline FoundEdge find_first_edge(const EdgePoints& points, std::uint32_t position,
                                            const double* query, Board& board) {
  struct Visit {
    TreeEdge least;  ///< no edge to a point of the node comes before
    std::uint32_t node;
  };
  const BoxTree& tree = points.tree;
  const std::uint32_t component = points.components[position], rank = points.ranks[position];
  const std::uint32_t leaves = tree.leaves(), stride = D > 0 ? D : tree.stride;
  const double core = points.cores[position];
  FoundEdge found{kNoTreeEdge, 0};
  TreeEdge bound{board.bound(), ~std::uint64_t{0}};
  const auto may_hold = [&](std::uint32_t node, Visit& visit) {
    const NodeFacts facts = points.facts[node];
    if (facts.component == component || facts.component == NodeFacts::kNone) return false;
    const double raw = raw_distance_of_node<M, D>(query, tree.low(node), stride);
    visit.least = {mutual_reachability(core, facts.core, distance_from_raw(M, raw)),
                   edge_ends(rank, facts.rank)};
    visit.node = node;
    return visit.least < bound;
  };
  const auto look_at = [&](std::uint32_t leaf) {
    bool better = false;
    for (std::uint32_t p = tree.begin(leaf), end = tree.begin(leaf + 1); p < end; ++p) {
      if (points.components[p] == component) continue;
      const double raw = raw_distance_of_points<M, D>(query, tree.point(p), stride);
      const TreeEdge edge{mutual_reachability(core, points.cores[p], distance_from_raw(M, raw)),
                          edge_ends(rank, points.ranks[p])};
      if (!(edge < bound)) continue;
      bound = found.edge = edge;
      better = true;
    }
    if (better) board.offer(bound.distance);
  };
  Visit visits[kMostTreeLevels + 1];
  std::uint32_t waiting = 0;
  Visit visit;
  bool there = may_hold(1, visit);
  for (;;) {
    while (there && visit.node < leaves) {
      Visit near, far;
      const std::uint32_t child = 2 * visit.node;
      bool has_near = may_hold(child, near), has_far = may_hold(child + 1, far);
      if (has_far && (!has_near || far.least < near.least)) {
        const Visit other = near;
        near = far;
        far = other;
        const bool had = has_near;
        has_near = true;
        has_far = had;
      }
      if (has_far) visits[waiting++] = far;
      visit = near;
      there = has_near;
    }
    if (there) {
      const double known = board.bound();
      if (known < bound.distance) bound = {known, ~std::uint64_t{0}};
      const std::uint32_t leaf = visit.node - leaves;
      if (visit.least < bound) {
        if (!board.goes_on(tree.begin(leaf + 1) - tree.begin(leaf))) break;
        look_at(leaf);
      }
    }
    there = false;
    while (!there && waiting > 0) {
      visit = visits[--waiting];
      there = visit.least < bound;
    }
    if (!there) break;
  }
  found.least = bound.distance;
  return found;
}

/// What is known of edges in a round, whose steps follow. Each point's is one thread's.
struct EdgeTable {
  EdgePoints points;
  const std::uint32_t* positions;  ///< [rows] by rank
  double* distances;               ///< [points] of the edge that a point has, of kNoTreeEdge: none
  std::uint64_t* ends;             ///< likewise
  std::uint8_t* proven;            ///< [points] it is the first one out of its component
  double* least;                   ///< [points] no edge out of the component is shorter
  double* first_distances;         ///< [points] of the first edge out of a component, by its name
  std::uint64_t* first_ends;       ///< likewise

  GPUJOIN_HD bool has_core(std::uint32_t point) const { return points.cores[point] <= DBL_MAX; }
  GPUJOIN_HD bool has_edge(std::uint32_t point) const { return ends[point] != kNoTreeEdge.ends; }
  GPUJOIN_HD TreeEdge edge(std::uint32_t point) const { return {distances[point], ends[point]}; }

  /// Before the first round.
  GPUJOIN_HD void begin(std::uint32_t point) const {
    set_edge(point, kNoTreeEdge, false);
    least[point] = points.cores[point];
  }

  /// Whether an edge of an earlier round still leads out of the component: then its distance is to
  /// be offered. What was the first one stays so, for components only grow. Else it is forgotten.
  GPUJOIN_HD bool offers(std::uint32_t point) const {
    if (!has_core(point) || !has_edge(point)) return false;
    const std::uint32_t a = positions[edge(point).first()], b = positions[edge(point).second()];
    if (points.components[a] != points.components[b]) return true;
    set_edge(point, kNoTreeEdge, false);
    return false;
  }
  /// After all such offers: whether the point may have an edge that comes before what is known, and
  /// has to search.
  GPUJOIN_HD bool is_open(std::uint32_t point) const {
    return has_core(point) && !proven[point] &&
           least[point] <= first_distances[points.components[point]];
  }
  /// What a search has found. An earlier edge, which no one has proven to be the first, may be the
  /// shorter one where the search had no need of any.
  GPUJOIN_HD void keep(std::uint32_t point, const FoundEdge& found) const {
    const TreeEdge before = edge(point);
    set_edge(point, found.edge < before ? found.edge : before, found.is_first());
    if (found.least > least[point]) least[point] = found.least;
  }
  /// After all searches: whether the point's edge is as short as the first of its component, of
  /// which the one with the first ends is it.
  GPUJOIN_HD bool is_as_short(std::uint32_t point) const {
    return has_core(point) && has_edge(point) &&
           distances[point] == first_distances[points.components[point]];
  }

 private:
  GPUJOIN_HD void set_edge(std::uint32_t point, TreeEdge edge, bool is_first) const {
    distances[point] = edge.distance;
    ends[point] = edge.ends;
    proven[point] = is_first;
  }
};

}  // namespace gpujoin
