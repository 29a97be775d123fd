#include "cpu/walk/edge_walker.h"

#include <algorithm>
#include <utility>

#include "core/cluster.h"

namespace gpujoin::cpu {
namespace {

/// An upper bound on the raw distances of points up to a distance.
double most_raw(Metric metric, double distance) {
  if (metric != Metric::kL2) return distance;
  return most_raw_beside(metric, distance * distance);
}

/// A lower bound on the raw distances, as the tree has them, of the points of two nodes.
template <Metric M>
double gap_of_nodes(const KdTree& tree, std::uint32_t a, std::uint32_t b) {
  double raw = 0;
  for (std::uint32_t d = 0; d < tree.dims; ++d)
    raw = add_gap<M>(raw, tree.low(a)[d], tree.high(a)[d], tree.low(b)[d], tree.high(b)[d]);
  return raw;
}

}  // namespace

EdgeWalker::EdgeWalker(const TreePoints& points, const NearLists& lists, TreeTable& table,
                       PointEdges& edges, const WalkTools& tools, WalkProgress& progress)
    : points_(points),
      pool_(tools.pool),
      lists_(lists),
      table_(table),
      edges_(edges),
      progress_(progress),
      scan_(points, tools) {
  visits_.reserve(points.tree->levels + 1);
  nodes_.reserve(points.tree->levels + 1);
}

void EdgeWalker::walk_lists(std::uint32_t begin, std::uint32_t end) {
  progress_.begin();
  for (std::uint32_t point = begin; point < end; ++point)
    if (table_.has_core(point)) look_at_list(point);
  progress_.report();
}

void EdgeWalker::walk_leaves(std::uint32_t begin, std::uint32_t end) {
  progress_.begin();
  for (std::uint32_t leaf = begin; leaf < end; ++leaf) walk_leaf(leaf);
  progress_.report();
}

/// Points that are not listed are at least as far away as the last that is. So the first edge to a
/// listed point is the first of all if it is shorter than that.
void EdgeWalker::look_at_list(std::uint32_t point) {
  const std::uint32_t component = table_.component(point), rank = table_.rank(point);
  const double core = table_.core(point), beyond = lists_.beyond(point);
  const std::uint64_t first = std::uint64_t{point} * lists_.length;
  TreeEdge best = kNoTreeEdge;
  for (std::uint32_t i = 0; i < lists_.length; ++i) {
    const std::uint32_t other = lists_.positions[first + i];
    if (other == NearLists::kNone) break;
    if (table_.component(other) == component) continue;
    const TreeEdge edge = {
        mutual_reachability(core, table_.core(other), lists_.distances[first + i]),
        edge_ends(rank, table_.rank(other))};
    if (edge < best) best = edge;
  }
  if (best < kNoTreeEdge) table_.offer(component, best);
  edges_.settled[point] = best.distance < beyond || beyond > DBL_MAX;
  double& least = edges_.least[point];
  least = std::max({least, core, std::min(beyond, best.distance)});
}

/// Whether the tree may have an edge of the point that comes before what is known.
bool EdgeWalker::is_open(std::uint32_t point) {
  return table_.has_core(point) && !edges_.settled[point] &&
         edges_.least[point] <= table_.first_distance(table_.component(point));
}

void EdgeWalker::walk_leaf(std::uint32_t leaf) {
  const Window points = points_.tree->leaf(leaf);
  bool asked = false;
  for (std::uint32_t point = points.begin; point < points.end; ++point) {
    if (!is_open(point)) continue;
    if (!std::exchange(asked, true) && !may_leave(leaf)) return;
    find(point);
  }
}

bool EdgeWalker::may_leave(std::uint32_t leaf) {
  const NodeFacts& facts = table_.facts(points_.tree->leaves() + leaf);
  if (facts.component == NodeFacts::kSeveral) return true;
  return by_indexed_metric(points_.indexed_metric, [&]<Metric M>() { return may_leave<M>(leaf); });
}

/// Whether an edge may lead from a leaf, all of one component, to another component. If none is
/// within the bound, all its points know that.
template <Metric M>
bool EdgeWalker::may_leave(std::uint32_t leaf) {
  const KdTree& tree = *points_.tree;
  const std::uint32_t own = tree.leaves() + leaf;
  const NodeFacts& facts = table_.facts(own);
  const double bound = table_.first_distance(facts.component);
  const double most = points_.most_tree_raw(most_raw(points_.metric, bound));
  nodes_.assign(1, 1);
  while (!nodes_.empty()) {
    pool_.throw_if_stopped();
    const std::uint32_t node = nodes_.back();
    nodes_.pop_back();
    const NodeFacts& other = table_.facts(node);
    if (other.component == facts.component || other.component == NodeFacts::kNone) continue;
    if (std::max(facts.core, other.core) > bound) continue;
    if (!(gap_of_nodes<M>(tree, own, node) <= most)) continue;
    if (node >= tree.leaves()) return true;
    nodes_.push_back(2 * node + 1);
    nodes_.push_back(2 * node);
  }
  const Window points = tree.leaf(leaf);
  for (std::uint32_t point = points.begin; point < points.end; ++point)
    edges_.least[point] = std::max(edges_.least[point], bound);
  return false;
}

void EdgeWalker::find(std::uint32_t point) {
  component_ = table_.component(point);
  rank_ = table_.rank(point);
  core_ = table_.core(point);
  scan_.load(point);
  set_bound(table_.first_edge(component_));
  by_indexed_metric(points_.indexed_metric, [&]<Metric M>() { descend<M>(); });
  edges_.least[point] = std::max(edges_.least[point], bound_.distance);
}

template <Metric M>
void EdgeWalker::descend() {
  const KdTree& tree = *points_.tree;
  Visit root;
  if (!may_hold<M>(1, &root)) return;
  visits_.assign(1, root);
  while (!visits_.empty()) {
    Visit visit = visits_.back();
    visits_.pop_back();
    bool there = visit.least < bound_;
    while (there && visit.node < tree.leaves()) {
      Visit near, far;
      bool has_near = may_hold<M>(2 * visit.node, &near);
      const bool has_far = may_hold<M>(2 * visit.node + 1, &far);
      if (has_far && (!has_near || far.least < near.least)) {
        std::swap(near, far);
        if (has_near) visits_.push_back(far);
        has_near = true;
      } else if (has_far) {
        visits_.push_back(far);
      }
      visit = near;
      there = has_near;
    }
    if (there) look_at(tree.leaf(visit.node - tree.leaves()));
  }
}

/// Whether an edge to a point of the node may come before the bound.
template <Metric M>
bool EdgeWalker::may_hold(std::uint32_t node, Visit* visit) const {
  const NodeFacts& facts = table_.facts(node);
  if (facts.component == component_ || facts.component == NodeFacts::kNone) return false;
  const double raw = scan_.raw_of_node<M>(node);
  if (!(raw <= scan_.most_tree_raw())) return false;
  visit->node = node;
  visit->least = {mutual_reachability(core_, facts.core, points_.least_distance(raw)),
                  edge_ends(rank_, facts.rank)};
  return visit->least < bound_;
}

void EdgeWalker::look_at(Window leaf) {
  follow_others();
  const std::size_t within = scan_.look_at(leaf);
  progress_.candidates += leaf.end - leaf.begin;
  TreeEdge best = bound_;
  for (std::size_t i = 0; i < within; ++i) {
    const std::uint32_t other = scan_.position(i);
    if (table_.component(other) == component_) continue;
    const TreeEdge edge = {mutual_reachability(core_, table_.core(other),
                                               distance_from_raw(points_.metric, scan_.raw(i))),
                           edge_ends(rank_, table_.rank(other))};
    if (edge < best) best = edge;
  }
  if (!(best < bound_)) return;
  table_.offer(component_, best);
  set_bound(best);
}

void EdgeWalker::set_bound(const TreeEdge& bound) {
  bound_ = bound;
  scan_.set_bound(most_raw(points_.metric, bound.distance));
}

/// Takes over what other workers have found for the component.
void EdgeWalker::follow_others() {
  if (table_.first_distance(component_) < bound_.distance) set_bound(table_.first_edge(component_));
}

}  // namespace gpujoin::cpu
