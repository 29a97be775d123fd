// How far away a neighbour may lie, once there are k so near: in the join's metric, in the sums
// that select, and in the scaled units of a screen.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/nearest.h"
#include "core/nearest_screen.h"
#include "core/threshold.h"

namespace gpujoin::cpu {

struct NearestBound {
  double near;   ///< of sums in any order: what exceeds it is no neighbour
  double reach;  ///< likewise of true distances, scaled; at most 2^60
};

/// Sums are squared distances of points, or for cosine of directions none of which is extreme.
class NearestBounds {
 public:
  /// `most_raw` is the largest raw distance that is wanted at all.
  NearestBounds(Metric metric, std::uint32_t dims, double most_raw, double scale)
      : metric_(metric), dims_(dims), most_raw_(most_raw), scale_(scale) {}

  NearestBound first() const { return bound_of(most_raw_); }

  /// There are k whose sums are at most this.
  NearestBound of_sum(double sum) const {
    const double raw = make_screen_bounds(Metric::kL2, sum, dims_).reject;
    if (metric_ != Metric::kCosine) return of_raw(raw);
    return of_raw(most_cosine_distance(std::sqrt(raw) * (1 + 0x1p-50), dims_));
  }

  /// There are k whose raw distances are at most this.
  NearestBound of_raw(double raw) const {
    return bound_of(std::min(most_raw_, most_raw_beside(metric_, raw)));
  }

 private:
  NearestBound bound_of(double raw) const {
    const double squares = metric_ == Metric::kCosine ? most_direction_raw(raw, dims_) : raw;
    return {make_screen_bounds(Metric::kL2, squares, dims_).reject,
            nearest_reach(metric_, raw, dims_, scale_)};
  }

  Metric metric_;
  std::uint32_t dims_;
  double most_raw_, scale_;
};

}  // namespace gpujoin::cpu
