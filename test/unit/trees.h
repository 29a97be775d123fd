// Spanning trees and the clusters in them, by their definitions and as slowly: for the tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <vector>

#include "engine/request/pair_cursor.h"
#include "oracle.h"
#include "points.h"

namespace gpujoin::test {

/// Distances of rows to their min_points-th nearest row, themselves counted; infinite where there
/// is none at a finite distance.
inline std::vector<double> define_cores(const std::vector<std::vector<double>>& distances,
                                        std::uint64_t min_points) {
  std::vector<double> cores(distances.size(), 0);
  for (std::size_t row = 0; row < distances.size() && min_points > 1; ++row) {
    std::vector<double> others;
    for (std::size_t other = 0; other < distances.size(); ++other)
      if (other != row && distances[row][other] <= kMax) others.push_back(distances[row][other]);
    std::sort(others.begin(), others.end());
    cores[row] = min_points - 1 <= others.size() ? others[min_points - 2] : kInf;
  }
  return cores;
}

/// Prim's tree, or several: edges by (distance, smaller id, larger id), ids by `points`, which are
/// no two rows'.
inline std::vector<FoundPair> define_tree(const Points& points, Metric metric,
                                          std::uint64_t min_points) {
  using Edge = std::tuple<double, std::int64_t, std::int64_t>;
  const std::uint64_t rows = points.rows();
  std::vector<double> a(points.dims()), b(points.dims());
  std::vector<std::vector<double>> distances(rows, std::vector<double>(rows));
  for (std::uint64_t i = 0; i < rows; ++i)
    for (std::uint64_t j = 0; j < rows; ++j)
      distances[i][j] =
          definition_of_distance(metric, points.row(i, a), points.row(j, b), points.dims());
  const std::vector<double> cores = define_cores(distances, min_points);
  const auto edge_of = [&](std::uint64_t i, std::uint64_t j) {
    // Not finite: no edge. std::max() would lose a NaN.
    const double apart = distances[i][j] <= kMax ? distances[i][j] : kInf;
    return Edge(std::max({apart, cores[i], cores[j]}), std::min(points.id(i), points.id(j)),
                std::max(points.id(i), points.id(j)));
  };
  std::vector<Edge> best(rows, Edge(kInf, 0, 0)), tree;
  std::vector<bool> done(rows, false);
  for (std::uint64_t step = 0; step < rows; ++step) {
    std::uint64_t next = rows;
    for (std::uint64_t row = 0; row < rows; ++row)
      if (!done[row] && (next == rows || best[row] < best[next])) next = row;
    done[next] = true;
    if (std::get<0>(best[next]) <= kMax) tree.push_back(best[next]);
    for (std::uint64_t row = 0; row < rows; ++row)
      if (!done[row]) best[row] = std::min(best[row], edge_of(next, row));
  }
  std::sort(tree.begin(), tree.end());
  std::vector<FoundPair> pairs;
  for (const auto& [distance, id1, id2] : tree) pairs.push_back({id1, id2, distance});
  return pairs;
}

struct DefinedClusters {
  std::vector<std::int64_t> clusters;  ///< by point, -1: noise
  std::vector<double> probabilities;
  bool is_close = false;  ///< two choices are about equally stable
};

/// From the top: a set of points loses all of its longest edges; the parts with `min_size` points
/// are clusters of their own where there are several.
class ClusterDefinition {
 public:
  ClusterDefinition(std::uint64_t points, const std::vector<FoundPair>& edges,
                    std::uint64_t min_size)
      : edges_(edges), min_size_(min_size), cluster_(points, 0), density_(points, 0) {
    std::vector<std::int64_t> all(points);
    std::iota(all.begin(), all.end(), 0);
    nodes_.emplace_back();
    take_apart(all, edges, 0, kInf);
    choose(0, &result_.is_close);
    answer();
  }

  const DefinedClusters& result() const { return result_; }

 private:
  struct Node {
    int parent = -1;
    double begin = 0, stability = 0, densest = 0;
    std::vector<int> children;
    bool chosen = false;
  };

  static double density_of(double distance) {
    return distance == kInf ? 0 : distance > 0 ? 1 / distance : kInf;
  }

  void leave(std::int64_t point, int node, double density) {
    cluster_[point] = node;
    density_[point] = density;
    nodes_[node].stability += density - nodes_[node].begin;
    nodes_[node].densest = std::max(nodes_[node].densest, density);
  }

  /// `points` are of a node, and hang together by `edges` at less than a distance, or are all.
  void take_apart(const std::vector<std::int64_t>& points, const std::vector<FoundPair>& edges,
                  int node, double cut) {
    std::map<std::int64_t, std::int64_t> root;
    for (const std::int64_t point : points) root[point] = point;
    const std::function<std::int64_t(std::int64_t)> find = [&](std::int64_t at) {
      return root[at] == at ? at : root[at] = find(root[at]);
    };
    std::vector<FoundPair> left;
    for (const FoundPair& edge : edges)
      if (edge.distance < cut) {
        left.push_back(edge);
        root[find(edge.id1)] = find(edge.id2);
      }
    std::map<std::int64_t, std::vector<std::int64_t>> parts;
    for (const std::int64_t point : points) parts[find(point)].push_back(point);
    const double density = density_of(cut);
    std::vector<const std::vector<std::int64_t>*> large;
    for (const auto& [_, part] : parts)
      if (part.size() >= min_size_)
        large.push_back(&part);
      else
        for (const std::int64_t point : part) leave(point, node, density);
    for (const auto* const part : large) {
      int at = node;
      if (large.size() > 1) {
        at = static_cast<int>(nodes_.size());
        nodes_.emplace_back();
        nodes_[at].parent = node;
        nodes_[at].begin = density;
        nodes_[node].children.push_back(at);
        nodes_[node].stability +=
            static_cast<double>(part->size()) * (density - nodes_[node].begin);
        nodes_[node].densest = std::max(nodes_[node].densest, density);
      }
      std::vector<FoundPair> own;
      double longest = 0;
      for (const FoundPair& edge : left)
        if (find(edge.id1) == find(part->front())) {
          own.push_back(edge);
          longest = std::max(longest, edge.distance);
        }
      take_apart(*part, own, at, longest);
    }
  }

  double choose(int node, bool* is_close) {
    double within = 0;
    for (const int child : nodes_[node].children) within += choose(child, is_close);
    const double own = nodes_[node].stability;
    if (node == 0) return 0;
    if (!nodes_[node].children.empty() && std::isfinite(own) &&
        std::abs(own - within) <= 1e-9 * std::abs(own) + 1e-300)
      *is_close = true;
    nodes_[node].chosen = own >= within;
    return std::max(own, within);
  }

  void answer() {
    std::map<int, std::int64_t> numbers;
    for (std::size_t point = 0; point < cluster_.size(); ++point) {
      int chosen = -1;
      for (int node = cluster_[point]; node >= 0; node = nodes_[node].parent)
        if (nodes_[node].chosen) chosen = node;
      if (chosen < 0) {
        result_.clusters.push_back(-1);
        result_.probabilities.push_back(0);
        continue;
      }
      const auto number =
          numbers.emplace(chosen, static_cast<std::int64_t>(numbers.size())).first->second;
      result_.clusters.push_back(number);
      const double densest = nodes_[chosen].densest;
      result_.probabilities.push_back(density_[point] >= densest ? 1 : density_[point] / densest);
    }
  }

  const std::vector<FoundPair>& edges_;
  const std::uint64_t min_size_;
  std::vector<Node> nodes_;
  std::vector<int> cluster_;
  std::vector<double> density_;
  DefinedClusters result_;
};

/// The clusters of a forest over points 0 .. points - 1.
inline DefinedClusters define_stable_clusters(std::uint64_t points,
                                              const std::vector<FoundPair>& edges,
                                              std::uint64_t min_size) {
  return ClusterDefinition(points, edges, min_size).result();
}

}  // namespace gpujoin::test
