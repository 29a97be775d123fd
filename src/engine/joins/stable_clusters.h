// Clusters of a spanning tree that persist over radii [HDBSCAN]: the tree is condensed to clusters
// of so many points or more, and the most stable ones are chosen. Pure: edges in, clusters out.
#pragma once

#include <cstdint>

#include "engine/request/buffer.h"

namespace gpujoin {

/// Points are 0 .. points - 1, in the order of their names: clusters are numbered by it. A
/// cluster's density is the reciprocal of a distance. As the distance grows, components of edges up
/// to it grow. One that reaches `min_size` points is a cluster; points that join it later belong to
/// it from that density on. Where several such components meet, their clusters end, and a larger
/// one begins [HDBSCAN] [accelerated-HDBSCAN]. All edges of one distance count at once, so that the
/// answer does not depend on their order.
///
/// The stability of a cluster is the sum over its points of the density from which on each is no
/// longer in it, less the density with which the cluster begins as seen from below: its excess of
/// mass [HDBSCAN-framework]. A cluster is chosen unless the best choice among those
/// within it is more stable in sum. The cluster that all others are within is never chosen.
class StableClusters {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  /// Points or clusters that one call goes through, some milliseconds of random access.
  static constexpr std::uint64_t kPiece = std::uint64_t{1} << 18;

  /// `min_size` >= 2, fewer than 2^32 - 1 points. Throws MemoryLimitExceeded or std::bad_alloc, and
  /// nothing later.
  StableClusters(MemoryBudget& budget, std::uint64_t points, std::uint64_t min_size);

  /// Bytes that it holds.
  static std::uint64_t bytes(std::uint64_t points, std::uint64_t min_size) {
    return points * (5 * sizeof(std::uint32_t) + 2 * sizeof(List) + sizeof(double)) +
           clusters_of(points, min_size) * sizeof(Cluster);
  }

  /// Takes the next edge of a spanning forest; distances are finite, >= 0, and ascend. Returns
  /// false if a piece of work was done instead: then the caller may stop, or calls again.
  [[nodiscard]] bool add(std::uint32_t a, std::uint32_t b, double distance);
  /// Works out the answer after the last edge. Returns false if there is more to do, as add().
  [[nodiscard]] bool finish();

  // The answer, valid once finish() has returned true.

  std::uint32_t clusters() const { return chosen_; }
  /// From 0, by the first point of each; kNone: noise.
  std::uint32_t cluster_of(std::uint32_t point) const;
  /// The density from which on the point is in its cluster, as a share of that at which the cluster
  /// is densest, up to 1 [accelerated-HDBSCAN]; 0 of noise.
  double probability_of(std::uint32_t point) const;

 private:
  struct Cluster {
    double created = 0;  ///< the distance at which it is complete enough to be one
    double mass = 0;     ///< the sum over its points of densities from which on they are in it
    double stability = 0;
    double within = 0;  ///< the best sum of stabilities of clusters within it
    std::uint64_t size = 0;
    std::uint32_t parent = kNone;
    std::uint32_t next = kNone;    ///< in the list of a component
    std::uint32_t choice = kNone;  ///< the chosen one that it is, or is within
    std::uint32_t number = kNone;  ///< of a chosen one
  };
  /// A list of points, or of clusters.
  struct List {
    std::uint32_t first = kNone, last = kNone;
  };

  /// There are `points` / `min_size` clusters with none within them at most, and fewer others, each
  /// of which has two or more.
  static std::uint64_t clusters_of(std::uint64_t points, std::uint64_t min_size) {
    return 2 * (points / min_size) + 1;
  }
  template <class Next>
  static void append(List& list, const List& other, const Next& next);
  bool is_piece_done() { return ++steps_ > kPiece; }
  bool prepare();
  bool settle(std::uint32_t component);
  bool settle_touched();
  std::uint32_t create_cluster();
  void end_cluster(std::uint32_t cluster, double density);
  bool end_children(std::uint32_t component);
  bool take_loose_points(std::uint32_t component, std::uint32_t cluster);
  double density() const;
  std::uint64_t phase_size() const;
  void do_phase(std::uint64_t at);
  void choose(std::uint32_t cluster);
  void inherit_choice(std::uint32_t cluster);
  void number_choice(std::uint64_t point);

  /// The loops of finish() over clusters, and at last over points.
  enum class Phase { kCountLast, kEndLast, kChoose, kInherit, kNumber, kDone };

  const std::uint64_t min_size_;
  double distance_ = 0;  ///< of the edges at hand
  double unit_ = 0;      ///< the first distance above 0; densities are relative to it

  // How far the work at hand is.
  std::uint64_t steps_ = 0;       ///< of this call
  std::uint64_t prepared_ = 0;    ///< points
  std::uint64_t settled_ = 0;     ///< components of touched_
  std::uint32_t parent_ = kNone;  ///< cluster whose children end
  std::uint64_t taken_ = 0;       ///< loose points of a component
  Phase phase_ = Phase::kCountLast;
  std::uint64_t phase_at_ = 0;
  std::uint32_t last_ = 0;  ///< clusters that are within no other

  // By component, at its root.
  Buffer<std::uint32_t> links_;
  Buffer<std::uint32_t> sizes_;
  Buffer<List> loose_;  ///< its points that are in no cluster yet
  Buffer<List> met_;    ///< its clusters; one, but for those that meet at the distance at hand
  Buffer<std::uint32_t> touched_;  ///< components that have grown at this distance
  std::uint64_t touched_count_ = 0;

  Buffer<std::uint32_t> next_;     ///< by point, in a list
  Buffer<std::uint32_t> cluster_;  ///< by point: the first that it is in
  Buffer<double> joined_;          ///< by point: the distance at which it joined that
  Buffer<Cluster> clusters_;       ///< each after those within it
  std::uint32_t cluster_count_ = 0, chosen_ = 0;
};

}  // namespace gpujoin
