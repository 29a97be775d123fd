// What is known of a request's pairs by their points' scores alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/request/request.h"

namespace gpujoin {

/// The least and the highest of a side's scores; {0, 0} for a side without rows or scores.
inline Interval score_range(const Dataset& data) {
  if (data.rows == 0 || data.scores == nullptr) return {0, 0};
  Interval range{data.scores[0], data.scores[0]};
  for (std::uint64_t row = 1; row < data.rows; ++row) {
    range.low = std::min(range.low, data.scores[row]);
    range.high = std::max(range.high, data.scores[row]);
  }
  return range;
}

/// The keys that the pair of a left point with a score in `left` and a right point with a score in
/// `right` can have, in either order where pairs are unordered.
struct KeyRange {
  std::uint64_t worst;
  std::uint64_t best;
};

inline KeyRange reachable_keys(const JoinRequest& request, Interval left, Interval right) {
  const Scoring& scoring = request.top().scoring;
  const Interval scores = reachable_scores(scoring, request.orders_pairs(), left, right);
  const std::uint64_t low = score_key(scoring.lowest_first, scores.low);
  const std::uint64_t high = score_key(scoring.lowest_first, scores.high);
  return {std::min(low, high), std::max(low, high)};
}

}  // namespace gpujoin
