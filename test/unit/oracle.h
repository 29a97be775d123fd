// Brute force straight from the definition of exactness: a loop of its own, which shares no code
// with the engines or with src/core, so that an error there cannot hide here. The answers, which
// are sorted, are in oracle.cpp, which is compiled with -O2.
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/request/request.h"
#include "points.h"

namespace gpujoin::test {

/// A row of a result. `distance` is 0 where none was asked for, and the score of a top pair.
struct FoundPair {
  std::int64_t id1;
  std::int64_t id2;
  double distance;

  bool operator==(const FoundPair&) const = default;
  bool operator<(const FoundPair& other) const {
    if (id1 != other.id1) return id1 < other.id1;
    return id2 != other.id2 ? id2 < other.id2 : distance < other.distance;
  }
};

struct RowCount {
  std::int64_t id;
  std::uint64_t count;

  auto operator<=>(const RowCount&) const = default;
};

/// Products and sums in column order, each rounded once; NaN for vectors without a direction.
inline double definition_of_cosine_distance(const double* a, const double* b, std::uint32_t dims) {
  double dot = 0, aa = 0, bb = 0;
  for (std::uint32_t d = 0; d < dims; ++d) {
    const double products[] = {a[d] * b[d], a[d] * a[d], b[d] * b[d]};
    dot = dot + products[0];
    aa = aa + products[1];
    bb = bb + products[2];
  }
  const double lengths = std::sqrt(aa) * std::sqrt(bb);
  if (lengths == 0 || !std::isfinite(lengths) || !std::isfinite(dot)) return kNan;
  return 1 - std::clamp(dot / lengths, -1.0, 1.0);
}

/// Differences, squares and the sum in column order, each rounded once, then a correctly rounded
/// root.
inline double definition_of_distance(Metric metric, const double* a, const double* b,
                                     std::uint32_t dims) {
  if (metric == Metric::kCosine) return definition_of_cosine_distance(a, b, dims);
  double sum = 0;
  double largest = 0;
  for (std::uint32_t d = 0; d < dims; ++d) {
    const double difference = a[d] - b[d];
    if (metric == Metric::kL2) {
      const double square = difference * difference;
      sum = sum + square;
    } else if (metric == Metric::kL1) {
      sum = sum + std::abs(difference);
    } else {
      if (std::isnan(difference)) return kNan;
      largest = std::max(largest, std::abs(difference));
    }
  }
  if (metric == Metric::kLInf) return largest;
  return metric == Metric::kL2 ? std::sqrt(sum) : sum;
}

/// The distance of two boxes, each its low corner and then its high one; where eps is 0 they have
/// to have a point in common. NaN where one of them is no box.
inline double definition_of_box_distance(Metric metric, double eps, const double* a,
                                         const double* b, std::uint32_t numbers) {
  const std::uint32_t dims = numbers / 2;
  double sum = 0;
  double largest = 0;
  bool apart = false;
  bool boxes = true;
  for (std::uint32_t d = 0; d < dims; ++d) {
    boxes = boxes && a[d] <= a[dims + d] && b[d] <= b[dims + d];
    double gap = 0;
    if (a[dims + d] < b[d]) gap = b[d] - a[dims + d];
    if (b[dims + d] < a[d]) gap = a[d] - b[dims + d];
    apart = apart || a[dims + d] < b[d] || b[dims + d] < a[d];
    const double square = gap * gap;
    sum = sum + (metric == Metric::kL2 ? square : gap);
    largest = std::max(largest, gap);
  }
  if (!boxes) return kNan;
  if (eps == 0) return apart ? 1 : 0;
  if (metric == Metric::kLInf) return largest;
  return metric == Metric::kL2 ? std::sqrt(sum) : sum;
}

/// The score of a pair in words other than the engines': weighted scores that overflow count as the
/// largest finite number.
inline double definition_of_score(const Scoring& scoring, double first, double second) {
  const double a = std::clamp(scoring.weights[0] * first, -kMax, kMax);
  const double b = std::clamp(scoring.weights[1] * second, -kMax, kMax);
  if (scoring.function == ScoreFunction::kSum) return a + b;
  if (scoring.function == ScoreFunction::kProduct) return a * b;
  return scoring.function == ScoreFunction::kMin ? std::min(a, b) : std::max(a, b);
}

/// Every match of a join, found once; the answers to all requests on the same points follow from
/// it.
class Oracle {
 public:
  /// `right` null: a self-join of `left`.
  Oracle(const Points& left, const Points* right, Metric metric, double eps)
      : Oracle(left, right, eps, [metric](const double* a, const double* b, std::uint32_t dims) {
          return definition_of_distance(metric, a, b, dims);
        }) {}

  static Oracle of_boxes(const Points& left, const Points* right, Metric metric, double eps) {
    return Oracle(left, right, eps,
                  [metric, eps](const double* a, const double* b, std::uint32_t numbers) {
                    return definition_of_box_distance(metric, eps, a, b, numbers);
                  });
  }

  template <class DistanceOf>
  Oracle(const Points& left, const Points* right, double eps, const DistanceOf& distance_of)
      : left_(left), right_(right == nullptr ? left : *right), self_join_(right == nullptr) {
    std::vector<double> a(left_.dims()), b(right_.dims());
    for (std::uint64_t p = 0; p < left_.rows(); ++p) {
      const double* const x = left_.row(p, a);
      for (std::uint64_t q = 0; q < right_.rows(); ++q) {
        const double distance = distance_of(x, right_.row(q, b), left_.dims());
        if (distance <= eps) matches_.push_back({p, q, distance});
      }
    }
  }

  /// The rows of the result, sorted.
  std::vector<FoundPair> pairs(PairSelection selection, bool with_distances = false) const;

  /// The rows of a top-k join, in their order. Pairs of one dataset, or of parts of one, have the
  /// smaller id first; of two equal ids the point with the lower score is the first.
  std::vector<FoundPair> top(const Top& top) const;

  /// For each left row the first k of its pairs by (distance, id), sorted as pairs are.
  std::vector<FoundPair> nearest(std::uint64_t k, PairSelection selection) const;

  /// One entry for each left row, sorted. Under kUnordered a pair counts where the smaller id is,
  /// and of two equal ids at either one.
  std::vector<RowCount> counts(PairSelection selection) const;

  std::uint64_t total(PairSelection selection) const;

  /// For each row what pack_cluster() makes of its cluster, sorted; of a self-join, with ids that
  /// are no two rows'.
  std::vector<RowCount> clusters(std::uint64_t min_points,
                                 BorderRule borders = BorderRule::kNearest) const;

 private:
  struct Match {
    std::uint64_t p, q;
    double distance;
  };

  bool wanted(const Match& match, PairSelection selection) const {
    if (!self_join_ || selection == PairSelection::kAll) return true;
    return selection == PairSelection::kDistinct ? match.p != match.q : match.p < match.q;
  }

  const Points& left_;
  const Points& right_;
  bool self_join_;
  std::vector<Match> matches_;  ///< by p
};

/// From the first row that has any finite ones, to all others, sorted.
std::vector<double> distances_of_a_row(const Points& points, Metric metric);

}  // namespace gpujoin::test
