#include "oracle.h"

namespace gpujoin::test {

std::vector<FoundPair> Oracle::pairs(PairSelection selection, bool with_distances) const {
  std::vector<FoundPair> rows;
  for (const Match& match : matches_) {
    if (!wanted(match, selection)) continue;
    std::int64_t id1 = left_.id(match.p), id2 = right_.id(match.q);
    if (selection == PairSelection::kUnordered && id2 < id1) std::swap(id1, id2);
    rows.push_back({id1, id2, with_distances ? match.distance : 0});
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::vector<FoundPair> Oracle::top(const Top& top) const {
  const bool unordered = self_join_ || top.parts_of_one;
  const bool by_distance = top.scoring.function == ScoreFunction::kDistance;
  std::vector<FoundPair> rows;
  for (const Match& match : matches_) {
    if (!wanted(match, PairSelection::kUnordered)) continue;
    std::pair<std::int64_t, double> first{left_.id(match.p), 0}, second{right_.id(match.q), 0};
    if (!by_distance) first.second = left_.score(match.p);
    if (!by_distance) second.second = right_.score(match.q);
    if (unordered && second < first) std::swap(first, second);
    rows.push_back({first.first, second.first,
                    by_distance ? match.distance
                                : definition_of_score(top.scoring, first.second, second.second)});
  }
  std::sort(rows.begin(), rows.end(), [&](const FoundPair& a, const FoundPair& b) {
    if (a.distance != b.distance) return (a.distance < b.distance) == top.scoring.lowest_first;
    return std::pair(a.id1, a.id2) < std::pair(b.id1, b.id2);
  });
  rows.resize(std::min<std::uint64_t>(rows.size(), top.k));
  return rows;
}

std::vector<RowCount> Oracle::counts(PairSelection selection) const {
  std::vector<RowCount> counts;
  for (std::uint64_t p = 0; p < left_.rows(); ++p) counts.push_back({left_.id(p), 0});
  for (const Match& match : matches_) {
    if (!wanted(match, selection)) continue;
    const bool second =
        selection == PairSelection::kUnordered && right_.id(match.q) < left_.id(match.p);
    ++counts[second ? match.q : match.p].count;
  }
  std::sort(counts.begin(), counts.end());
  return counts;
}

std::uint64_t Oracle::total(PairSelection selection) const {
  return static_cast<std::uint64_t>(
      std::count_if(matches_.begin(), matches_.end(),
                    [&](const Match& match) { return wanted(match, selection); }));
}

}  // namespace gpujoin::test
