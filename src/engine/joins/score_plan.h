// Which strata of both sides have to be joined so that no pair with a good score is lost, in how
// many joins, and their cost. Scores alone decide here; locations are not known.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/joins/score_strata.h"
#include "engine/request/request.h"

namespace gpujoin {

/// A join of left rows in some strata with right rows in some; or of the left rows with each other.
struct ScoreStep {
  StrataSet left;
  StrataSet right;
  bool self;
  std::uint64_t best_key;  ///< that a pair of it can have
};

/// What joining parts is expected to take, in nanoseconds.
struct ScoreCosts {
  double row;       ///< of a part, copying it and building its index
  double row_pair;  ///< of a row on the left with one on the right, on average
  double step;      ///< of a part, whatever its size
};

/// For requests whose scores follow from the scores of points.
class ScorePlanner {
 public:
  /// In a self-join `right` is the left side's.
  ScorePlanner(const JoinRequest& request, const ScoreStrata& left, const ScoreStrata& right,
               const ScoreCosts& costs);

  /// The highest key that at least so many pairs of rows have or exceed, as far as strata show; 0
  /// where there are fewer.
  std::uint64_t key_of(double row_pairs) const;
  /// How many pairs of rows are known to have this key or a higher one.
  double row_pairs(std::uint64_t key) const;

  /// Joins of parts that together meet each pair of rows at most once, and each that can have this
  /// key or a higher one; the best first. Sets *ns to their cost.
  std::vector<ScoreStep> plan(std::uint64_t key, double* ns) const;

 private:
  struct Cell {
    std::uint32_t left, right;
    std::uint64_t worst, best;
    double row_pairs;
  };
  using Partners = std::vector<StrataSet>;

  std::uint64_t best_key(StrataSet left, StrataSet right) const;
  double cost(const ScoreStep& step) const;
  double add_steps(const Partners& partners, std::uint32_t begin, std::uint32_t end,
                   std::vector<ScoreStep>* steps) const;

  bool self_join_;
  const ScoreStrata& left_;
  const ScoreStrata& right_;
  ScoreCosts costs_;
  std::vector<Cell> cells_;  // of strata with rows, by their worst keys, the best first
};

}  // namespace gpujoin
