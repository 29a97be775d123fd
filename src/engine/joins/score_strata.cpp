#include "engine/joins/score_strata.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace gpujoin {
namespace {

constexpr std::uint64_t kSampleScores = 16384;

/// The scores at which strata begin, but for the lowest: at both ends of a sample by ranks that
/// grow by a factor, so that the best rows are a stratum of few.
std::vector<double> boundaries(const Dataset& data) {
  std::vector<double> sample(std::min(data.rows, kSampleScores));
  for (std::size_t i = 0; i < sample.size(); ++i)
    sample[i] = data.scores[(2 * i + 1) * data.rows / (2 * sample.size())];
  std::sort(sample.begin(), sample.end());

  constexpr std::uint32_t kCuts = (kMostStrata - 1) / 2;  // from either end
  const auto half = static_cast<double>(sample.size() / 2);
  std::vector<double> cuts;
  for (std::uint32_t i = 0; i < kCuts && half >= 1; ++i) {
    const auto rank = static_cast<std::size_t>(std::pow(half, i / (kCuts - 1.0)));
    cuts.push_back(sample[rank]);
    cuts.push_back(sample[sample.size() - rank]);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

}  // namespace

std::uint64_t ScoreStrata::rows_of(StrataSet set) const {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < kMostStrata; ++i)
    if (contains(set, i)) sum += rows[i];
  return sum;
}

Interval ScoreStrata::range_of(StrataSet set) const {
  std::uint32_t lowest = 0, highest = kMostStrata - 1;
  while (!contains(set, lowest) || rows[lowest] == 0) ++lowest;
  while (!contains(set, highest) || rows[highest] == 0) --highest;
  return {range[lowest].low, range[highest].high};
}

ScoreStrata cut_by_score(MemoryBudget& budget, const Dataset& data) {
  const std::vector<double> cuts = boundaries(data);
  // Filled up to a number that halving goes through without a branch.
  std::array<double, 64> steps;
  steps.fill(INFINITY);
  std::copy(cuts.begin(), cuts.end(), steps.begin());

  ScoreStrata strata;
  strata.of_row = Buffer<std::uint8_t>(budget, data.rows);
  strata.range.fill({INFINITY, -INFINITY});
  for (std::uint64_t row = 0; row < data.rows; ++row) {
    const double score = data.scores[row];
    std::uint32_t stratum = 0;  // how many cuts are at or below the score
    for (std::uint32_t shift = 6; shift-- > 0;) {
      const std::uint32_t half = 1u << shift;
      stratum += static_cast<std::uint32_t>(steps[stratum + half - 1] <= score) << shift;
    }
    strata.of_row[row] = static_cast<std::uint8_t>(stratum);
    ++strata.rows[stratum];
    Interval& range = strata.range[stratum];
    range.low = score < range.low ? score : range.low;
    range.high = score > range.high ? score : range.high;
  }
  return strata;
}

}  // namespace gpujoin
