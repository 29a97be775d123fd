#include "engine/joins/score_plan.h"

#include <algorithm>
#include <limits>

#include "engine/joins/score_bounds.h"

namespace gpujoin {
namespace {

/// Strata begin .. end - 1.
StrataSet between(std::uint32_t begin, std::uint32_t end) {
  return (StrataSet{1} << end) - (StrataSet{1} << begin);
}

}  // namespace

ScorePlanner::ScorePlanner(const JoinRequest& request, const ScoreStrata& left,
                           const ScoreStrata& right, const ScoreCosts& costs)
    : self_join_(request.self_join()), left_(left), right_(right), costs_(costs) {
  for (std::uint32_t i = 0; i < kMostStrata; ++i) {
    for (std::uint32_t j = 0; j < kMostStrata; ++j) {
      if (left.rows[i] == 0 || right.rows[j] == 0) continue;
      const KeyRange keys = reachable_keys(request, left.range[i], right.range[j]);
      // In a self-join a pair is met in two cells, or in one of them twice.
      const double row_pairs = static_cast<double>(left.rows[i]) *
                               static_cast<double>(right.rows[j]) * (self_join_ ? 0.5 : 1);
      cells_.push_back({i, j, keys.worst, keys.best, row_pairs});
    }
  }
  std::sort(cells_.begin(), cells_.end(),
            [](const Cell& a, const Cell& b) { return a.worst > b.worst; });
}

std::uint64_t ScorePlanner::key_of(double row_pairs) const {
  double sum = 0;
  for (const Cell& cell : cells_) {
    sum += cell.row_pairs;
    if (sum >= row_pairs) return cell.worst;
  }
  return 0;
}

double ScorePlanner::row_pairs(std::uint64_t key) const {
  double sum = 0;
  for (const Cell& cell : cells_)
    if (cell.worst >= key) sum += cell.row_pairs;
  return sum;
}

std::uint64_t ScorePlanner::best_key(StrataSet left, StrataSet right) const {
  std::uint64_t best = 0;
  for (const Cell& cell : cells_)
    if (contains(left, cell.left) && contains(right, cell.right)) best = std::max(best, cell.best);
  return best;
}

double ScorePlanner::cost(const ScoreStep& step) const {
  const auto left = static_cast<double>(left_.rows_of(step.left));
  const auto right = static_cast<double>(right_.rows_of(step.right));
  return costs_.step + costs_.row * (left + (step.self ? 0 : right)) +
         costs_.row_pair * left * right * (step.self ? 0.5 : 1);
}

/// What it takes to join the band of left strata begin .. end - 1 with their partners. In a
/// self-join these are the band itself and all strata above: the ones below have joined the band as
/// their partner already. Appends the joins to *steps, which may be null.
double ScorePlanner::add_steps(const Partners& partners, std::uint32_t begin, std::uint32_t end,
                               std::vector<ScoreStep>* steps) const {
  const StrataSet band = between(begin, end);
  const StrataSet others = self_join_ ? between(end, kMostStrata) : between(0, kMostStrata);
  ScoreStep self{0, 0, true, 0}, cross{0, 0, false, 0};
  for (std::uint32_t i = begin; i < end; ++i) {
    if (self_join_ && (partners[i] & band) != 0) self.left |= StrataSet{1} << i;
    if ((partners[i] & others) != 0) cross.left |= StrataSet{1} << i;
    cross.right |= partners[i] & others;
  }
  self.right = self.left;
  double ns = 0;
  for (const ScoreStep& step : {self, cross}) {
    if (step.left == 0) continue;
    ns += cost(step);
    if (steps != nullptr) steps->push_back(step);
  }
  return ns;
}

/// Left strata are cut into bands of neighbours, each joined with what any of its strata needs. The
/// cheapest way to cut follows from the cheapest ways to cut the strata below.
///
/// Every cell that can have the key is joined: its left stratum i is in one band. With two datasets
/// its right stratum j is among i's partners, hence among the band's. In a self-join partners are
/// mutual; where j lies in i's band both are in the band's join with itself, and else the lower
/// one's band is joined with the other. No pair of strata is met by two joins, since bands do not
/// overlap.
std::vector<ScoreStep> ScorePlanner::plan(std::uint64_t key, double* ns) const {
  Partners partners(kMostStrata);
  for (const Cell& cell : cells_)
    if (cell.best >= key) partners[cell.left] |= StrataSet{1} << cell.right;

  std::vector<double> cheapest(kMostStrata + 1, std::numeric_limits<double>::infinity());
  std::vector<std::uint32_t> begin_of(kMostStrata + 1);  // of the last band of the cheapest cut
  cheapest[0] = 0;
  for (std::uint32_t end = 1; end <= kMostStrata; ++end) {
    for (std::uint32_t begin = 0; begin < end; ++begin) {
      const double sum = cheapest[begin] + add_steps(partners, begin, end, nullptr);
      if (sum >= cheapest[end]) continue;
      cheapest[end] = sum;
      begin_of[end] = begin;
    }
  }
  *ns = cheapest[kMostStrata];

  std::vector<ScoreStep> steps;
  for (std::uint32_t end = kMostStrata; end > 0; end = begin_of[end])
    add_steps(partners, begin_of[end], end, &steps);
  for (ScoreStep& step : steps) step.best_key = best_key(step.left, step.right);
  std::stable_sort(steps.begin(), steps.end(),
                   [](const ScoreStep& a, const ScoreStep& b) { return a.best_key > b.best_key; });
  return steps;
}

}  // namespace gpujoin
