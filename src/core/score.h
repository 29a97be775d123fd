// Scores of pairs and their order: how a pair's score follows from its points' scores, what a score
// can be at most where only intervals are known, and which of two pairs comes first. Top-k joins of
// both engines answer to what stands here.
#pragma once

#include <cfloat>
#include <cstdint>

#include "core/ordered_bits.h"
#include "core/portability.h"

namespace gpujoin {

/// The aggregation function gamma of a top-k join [thesis, section 2.1.2]. It need not be monotone.
/// kDistance: the distance itself; points need no scores.
enum class ScoreFunction : std::int32_t { kSum, kProduct, kMin, kMax, kDistance };

/// `weights` multiply the scores of the first and the second point before anything else; 1 changes
/// nothing.
struct Scoring {
  ScoreFunction function;
  bool lowest_first;
  double weights[2];
};

struct Interval {
  double low;
  double high;
};

/// A point's score times its weight; the largest finite number of its sign where that overflows, so
/// that no two of them have a sum or product of NaN.
GPUJOIN_HD inline double weighted(double weight, double score) {
  const double product = multiply_rounded(weight, score);
  return product > DBL_MAX ? DBL_MAX : product < -DBL_MAX ? -DBL_MAX : product;
}

/// The score of a pair from its points' scores, in IEEE double precision, each step rounded once.
/// Never -0; never NaN for finite scores and weights, but infinite where two of them overflow. Not
/// for kDistance.
GPUJOIN_HD inline double pair_score(const Scoring& scoring, double first, double second) {
  const double a = weighted(scoring.weights[0], first);
  const double b = weighted(scoring.weights[1], second);
  double score = 0;
  switch (scoring.function) {
    case ScoreFunction::kSum:
      score = add_rounded(a, b);
      break;
    case ScoreFunction::kProduct:
      score = multiply_rounded(a, b);
      break;
    case ScoreFunction::kMin:
      score = b < a ? b : a;
      break;
    default:
      score = b > a ? b : a;
  }
  return score + 0.0;
}

/// What the score of a pair can be when its points' scores lie in two intervals.
///
/// Every function is monotone in each argument while the other is held: a sum, a minimum and a
/// maximum rise with both, a product rises or falls with one according to the sign of the other. So
/// for any point (a, b) of the rectangle, going along the first argument to one of its ends does
/// not lower the score, nor does then going along the second: the highest score is at a corner, and
/// so is the lowest. Weights are products with a constant, monotone too. Rounding to nearest is
/// monotone, and so are the bound of weighted() and the addition of 0, so the same holds of rounded
/// scores: the corners' computed scores bound every computed score, with no margin.
GPUJOIN_HD inline Interval score_bounds(const Scoring& scoring, Interval first, Interval second) {
  Interval bounds{pair_score(scoring, first.low, second.low), 0};
  bounds.high = bounds.low;
  const double corners[] = {pair_score(scoring, first.low, second.high),
                            pair_score(scoring, first.high, second.low),
                            pair_score(scoring, first.high, second.high)};
  for (const double corner : corners) {
    bounds.low = corner < bounds.low ? corner : bounds.low;
    bounds.high = corner > bounds.high ? corner : bounds.high;
  }
  return bounds;
}

/// The same for pairs that are met in any order: where they are `unordered`, either point may be
/// the first.
GPUJOIN_HD inline Interval reachable_scores(const Scoring& scoring, bool unordered, Interval left,
                                            Interval right) {
  Interval scores = score_bounds(scoring, left, right);
  if (!unordered) return scores;
  const Interval swapped = score_bounds(scoring, right, left);
  scores.low = swapped.low < scores.low ? swapped.low : scores.low;
  scores.high = swapped.high > scores.high ? swapped.high : scores.high;
  return scores;
}

/// Whether the point with (id1, score1) is the first of an unordered pair. The point with the
/// smaller id is; where both ids are the same, the point with the lower score.
GPUJOIN_HD inline bool comes_first(std::int64_t id1, double score1, std::int64_t id2,
                                   double score2) {
  return id1 != id2 ? id1 < id2 : score1 <= score2;
}

/// An integer that is larger the better the score is: pairs come in descending order of it. Both
/// zeros have one key.
GPUJOIN_HD inline std::uint64_t score_key(bool lowest_first, double score) {
  const std::uint64_t ascending = ordered_bits(score + 0.0);
  return lowest_first ? ~ascending : ascending;
}

/// The score that has this key.
GPUJOIN_HD inline double score_of_key(bool lowest_first, std::uint64_t key) {
  return from_ordered_bits(lowest_first ? ~key : key);
}

/// The best key within bounds.
GPUJOIN_HD inline std::uint64_t best_key(bool lowest_first, Interval bounds) {
  return score_key(lowest_first, lowest_first ? bounds.low : bounds.high);
}

}  // namespace gpujoin
