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
      clusters_(budget, clusters_of(points, min_size)) {
  for (std::uint64_t point = 0; point < points; ++point) {
    const auto number = static_cast<std::uint32_t>(point);
    links_[point] = number;
    sizes_[point] = 1;
    loose_[point] = {number, number};
    met_[point] = {};
    next_[point] = kNone;
    cluster_[point] = kNone;
    joined_[point] = 0;
  }
}

void StableClusters::add(std::uint32_t a, std::uint32_t b, double distance) {
  if (distance != distance_) {
    settle_touched();
    distance_ = distance;
    if (unit_ == 0) unit_ = distance;
  }
  const DisjointSets components(links_.data());
  a = components.root(a);
  b = components.root(b);
  if (a == b) return;
  components.unite(a, b);
  if (components.root(a) != a) std::swap(a, b);
  sizes_[a] += sizes_[b];
  append(
      loose_[a], loose_[b], [this](std::uint32_t at) -> auto& { return next_[at]; });
  append(
      met_[a], met_[b], [this](std::uint32_t at) -> auto& { return clusters_[at].next; });
  touched_[touched_count_++] = a;
}

void StableClusters::finish() {
  settle_touched();
  end_last_clusters();
  choose();
  number_chosen();
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

void StableClusters::settle_touched() {
  for (std::uint64_t i = 0; i < touched_count_; ++i)
    if (links_[touched_[i]] == touched_[i]) settle(touched_[i]);
  touched_count_ = 0;
}

/// Once all edges of a distance are there. A second time it changes nothing.
void StableClusters::settle(std::uint32_t component) {
  List& met = met_[component];
  if (met.first == kNone) {
    if (sizes_[component] < min_size_) return;
    const std::uint32_t created = create_cluster();
    met = {created, created};
  } else if (met.first != met.last) {
    const std::uint32_t created = create_cluster();
    Cluster& parent = clusters_[created];
    for (std::uint32_t child = met.first; child != kNone;) {
      const std::uint32_t next = std::exchange(clusters_[child].next, kNone);
      clusters_[child].parent = created;
      end_cluster(child, density());
      parent.size += clusters_[child].size;
      child = next;
    }
    parent.mass = static_cast<double>(parent.size) * density();
    met = {created, created};
  }
  take_loose_points(component, met.first);
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

void StableClusters::take_loose_points(std::uint32_t component, std::uint32_t cluster) {
  List& loose = loose_[component];
  if (loose.first == kNone) return;
  std::uint64_t count = 0;
  for (std::uint32_t point = loose.first; point != kNone; point = next_[point]) {
    cluster_[point] = cluster;
    joined_[point] = distance_;
    ++count;
  }
  loose = {};
  clusters_[cluster].size += count;
  clusters_[cluster].mass += static_cast<double>(count) * density();
}

/// Of several trees each may be a cluster; one alone holds all others.
void StableClusters::end_last_clusters() {
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < cluster_count_; ++i) last += clusters_[i].parent == kNone;
  for (std::uint32_t i = 0; i < cluster_count_; ++i) {
    if (clusters_[i].parent != kNone) continue;
    end_cluster(i, 0);
    if (last == 1) clusters_[i].stability = -1;
  }
}

void StableClusters::choose() {
  for (std::uint32_t i = 0; i < cluster_count_; ++i) {
    Cluster& cluster = clusters_[i];
    const bool chosen = cluster.stability >= cluster.within;
    cluster.choice = chosen ? i : kNone;
    if (cluster.parent != kNone)
      clusters_[cluster.parent].within += chosen ? cluster.stability : cluster.within;
  }
  for (std::uint32_t i = cluster_count_; i-- > 0;) {
    const std::uint32_t parent = clusters_[i].parent;
    if (parent != kNone && clusters_[parent].choice != kNone)
      clusters_[i].choice = clusters_[parent].choice;
  }
}

void StableClusters::number_chosen() {
  for (std::uint64_t point = 0; point < cluster_.size(); ++point) {
    if (cluster_[point] == kNone) continue;
    const std::uint32_t choice = clusters_[cluster_[point]].choice;
    if (choice != kNone && clusters_[choice].number == kNone) clusters_[choice].number = chosen_++;
  }
}

}  // namespace gpujoin
