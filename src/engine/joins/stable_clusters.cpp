#include "engine/joins/stable_clusters.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/disjoint_sets.h"

namespace gpujoin {

StableClusters::StableClusters(MemoryBudget& budget, std::uint64_t points, std::uint64_t min_size)
    : min_size_(min_size),
      links_(budget, points),
      sizes_(budget, points),
      loose_(budget, points),
      met_(budget, points),
      touched_(budget, points),
      next_(budget, points),
      cluster_(budget, points),
      joined_(budget, points),
      clusters_(budget, clusters_of(points, min_size)) {}

/// Some more points.
bool StableClusters::prepare() {
  for (; prepared_ < links_.size(); ++prepared_) {
    if (is_piece_done()) return false;
    const auto number = static_cast<std::uint32_t>(prepared_);
    links_[prepared_] = number;
    sizes_[prepared_] = 1;
    loose_[prepared_] = {number, number};
    met_[prepared_] = {};
    next_[prepared_] = kNone;
    cluster_[prepared_] = kNone;
    joined_[prepared_] = 0;
  }
  return true;
}

bool StableClusters::add(std::uint32_t a, std::uint32_t b, double distance) {
  steps_ = 0;
  if (!prepare()) return false;
  if (distance != distance_) {
    if (!settle_touched()) return false;
    distance_ = distance;
    if (unit_ == 0) unit_ = distance;
  }
  const DisjointSets components(links_.data());
  a = components.root(a);
  b = components.root(b);
  if (a == b) return true;
  components.unite(a, b);
  if (components.root(a) != a) std::swap(a, b);
  sizes_[a] += sizes_[b];
  append(
      loose_[a], loose_[b], [this](std::uint32_t at) -> auto& { return next_[at]; });
  append(
      met_[a], met_[b], [this](std::uint32_t at) -> auto& { return clusters_[at].next; });
  touched_[touched_count_++] = a;
  return true;
}

bool StableClusters::finish() {
  steps_ = 0;
  if (!prepare() || !settle_touched()) return false;
  while (phase_ != Phase::kDone) {
    for (; phase_at_ < phase_size(); ++phase_at_) {
      if (is_piece_done()) return false;
      do_phase(phase_at_);
    }
    phase_ = static_cast<Phase>(static_cast<int>(phase_) + 1);
    phase_at_ = 0;
  }
  return true;
}

std::uint64_t StableClusters::phase_size() const {
  return phase_ == Phase::kNumber ? cluster_.size() : cluster_count_;
}

void StableClusters::do_phase(std::uint64_t at) {
  const auto cluster = static_cast<std::uint32_t>(at);
  switch (phase_) {
    case Phase::kCountLast:
      last_ += clusters_[cluster].parent == kNone;
      break;
    case Phase::kEndLast:
      if (clusters_[cluster].parent != kNone) break;
      end_cluster(cluster, 0);
      // Of several trees each may be a cluster; one alone holds all others.
      if (last_ == 1) clusters_[cluster].stability = -1;
      break;
    case Phase::kChoose:
      choose(cluster);
      break;
    case Phase::kInherit:
      inherit_choice(cluster_count_ - 1 - cluster);
      break;
    default:
      number_choice(at);
  }
}

std::uint32_t StableClusters::cluster_of(std::uint32_t point) const {
  const std::uint32_t cluster = cluster_[point];
  const std::uint32_t choice = cluster == kNone ? kNone : clusters_[cluster].choice;
  return choice == kNone ? kNone : clusters_[choice].number;
}

double StableClusters::probability_of(std::uint32_t point) const {
  if (cluster_of(point) == kNone) return 0;
  const double densest = clusters_[clusters_[cluster_[point]].choice].created;
  return joined_[point] <= densest ? 1 : densest / joined_[point];
}

template <class Next>
void StableClusters::append(List& list, const List& other, const Next& next) {
  if (other.first == kNone) return;
  if (list.first == kNone)
    list.first = other.first;
  else
    next(list.last) = other.first;
  list.last = other.last;
}

/// 1 / distance, in units that keep sums of it finite, but for points at one place.
double StableClusters::density() const {
  return distance_ > 0 ? unit_ / distance_ : std::numeric_limits<double>::infinity();
}

bool StableClusters::settle_touched() {
  for (; settled_ < touched_count_; ++settled_) {
    if (is_piece_done()) return false;
    const std::uint32_t component = touched_[settled_];
    if (links_[component] == component && !settle(component)) return false;
  }
  touched_count_ = settled_ = 0;
  return true;
}

/// Once all edges of a distance are there. Returns false if the piece ended before: the next call
/// goes on. After that it changes nothing.
bool StableClusters::settle(std::uint32_t component) {
  List& met = met_[component];
  if (met.first == kNone && parent_ == kNone) {
    if (sizes_[component] < min_size_) return true;
    const std::uint32_t created = create_cluster();
    met = {created, created};
  } else if (parent_ != kNone || met.first != met.last) {
    if (!end_children(component)) return false;
  }
  return take_loose_points(component, met.first);
}

/// Ends the clusters of a component, which a new one is made of.
bool StableClusters::end_children(std::uint32_t component) {
  List& met = met_[component];
  if (parent_ == kNone) parent_ = create_cluster();
  Cluster& parent = clusters_[parent_];
  while (met.first != kNone) {
    if (is_piece_done()) return false;
    const std::uint32_t child = met.first;
    met.first = std::exchange(clusters_[child].next, kNone);
    clusters_[child].parent = parent_;
    end_cluster(child, density());
    parent.size += clusters_[child].size;
  }
  parent.mass = static_cast<double>(parent.size) * density();
  met = {parent_, parent_};
  parent_ = kNone;
  return true;
}

std::uint32_t StableClusters::create_cluster() {
  clusters_[cluster_count_] = {};
  clusters_[cluster_count_].created = distance_;
  return cluster_count_++;
}

/// A density of 0: it never ends.
void StableClusters::end_cluster(std::uint32_t cluster, double density) {
  Cluster& ended = clusters_[cluster];
  ended.stability = ended.mass - static_cast<double>(ended.size) * density;
}

bool StableClusters::take_loose_points(std::uint32_t component, std::uint32_t cluster) {
  List& loose = loose_[component];
  while (loose.first != kNone) {
    if (is_piece_done()) return false;
    const std::uint32_t point = loose.first;
    loose.first = next_[point];
    cluster_[point] = cluster;
    joined_[point] = distance_;
    ++taken_;
  }
  if (taken_ == 0) return true;
  const std::uint64_t count = std::exchange(taken_, 0);
  clusters_[cluster].size += count;
  clusters_[cluster].mass += static_cast<double>(count) * density();
  return true;
}

/// Clusters come after those within them.
void StableClusters::choose(std::uint32_t number) {
  Cluster& cluster = clusters_[number];
  const bool chosen = cluster.stability >= cluster.within;
  cluster.choice = chosen ? number : kNone;
  if (cluster.parent != kNone)
    clusters_[cluster.parent].within += chosen ? cluster.stability : cluster.within;
}

/// Called for outer clusters before the clusters within them.
void StableClusters::inherit_choice(std::uint32_t cluster) {
  const std::uint32_t parent = clusters_[cluster].parent;
  if (parent != kNone && clusters_[parent].choice != kNone)
    clusters_[cluster].choice = clusters_[parent].choice;
}

void StableClusters::number_choice(std::uint64_t point) {
  if (cluster_[point] == kNone) return;
  const std::uint32_t choice = clusters_[cluster_[point]].choice;
  if (choice != kNone && clusters_[choice].number == kNone) clusters_[choice].number = chosen_++;
}

}  // namespace gpujoin
