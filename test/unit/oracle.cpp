#include "oracle.h"

#include <map>
#include <numeric>
#include <span>

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

std::vector<FoundPair> Oracle::nearest(std::uint64_t k, PairSelection selection) const {
  std::vector<FoundPair> rows;
  for (auto begin = matches_.begin(); begin != matches_.end();) {
    const auto end = std::find_if(begin, matches_.end(),
                                  [&](const Match& match) { return match.p != begin->p; });
    std::vector<FoundPair> of_row;
    for (; begin != end; ++begin)
      if (wanted(*begin, selection))
        of_row.push_back({left_.id(begin->p), right_.id(begin->q), begin->distance});
    const auto last =
        of_row.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(of_row.size(), k));
    std::partial_sort(of_row.begin(), last, of_row.end(),
                      [](const FoundPair& a, const FoundPair& b) {
                        return std::pair(a.distance, a.id2) < std::pair(b.distance, b.id2);
                      });
    rows.insert(rows.end(), of_row.begin(), last);
  }
  std::sort(rows.begin(), rows.end());
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

std::vector<RowCount> Oracle::clusters(std::uint64_t min_points, BorderRule borders) const {
  constexpr std::uint64_t kNobody = ~std::uint64_t{0};
  const std::uint64_t rows = left_.rows();
  // Matches come by their left row.
  std::vector<std::uint64_t> begins(rows + 1), neighbors(rows);
  for (const Match& match : matches_) {
    ++begins[match.p + 1];
    neighbors[match.p] += match.p != match.q;
  }
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  const auto matches_of = [&](std::uint64_t row) {
    return std::span(matches_).subspan(begins[row], begins[row + 1] - begins[row]);
  };
  const auto is_core = [&](std::uint64_t row) { return neighbors[row] + 1 >= min_points; };
  std::vector<std::uint64_t> group(rows, kNobody);
  for (std::uint64_t row = 0; row < rows; ++row) {
    if (!is_core(row) || group[row] != kNobody) continue;
    std::vector<std::uint64_t> found{row};
    group[row] = row;
    for (std::size_t at = 0; at < found.size(); ++at)
      for (const Match& match : matches_of(found[at])) {
        if (!is_core(match.q) || group[match.q] != kNobody) continue;
        group[match.q] = row;
        found.push_back(match.q);
      }
  }
  std::vector<std::uint64_t> role(rows);
  for (std::uint64_t row = 0; row < rows; ++row) {
    role[row] = is_core(row) ? 2 : 0;
    const Match* followed = nullptr;
    const auto rank = [&](const Match& match) {
      return std::pair(borders == BorderRule::kNearest ? match.distance : 0, left_.id(match.q));
    };
    if (role[row] == 0)
      for (const Match& match : matches_of(row))
        if (is_core(match.q) && (followed == nullptr || rank(match) < rank(*followed)))
          followed = &match;
    if (followed == nullptr) continue;
    role[row] = 1;
    group[row] = group[followed->q];
  }
  std::map<std::uint64_t, std::int64_t> first;
  for (std::uint64_t row = 0; row < rows; ++row)
    if (group[row] != kNobody)
      first[group[row]] =
          std::min(first.try_emplace(group[row], left_.id(row)).first->second, left_.id(row));
  std::map<std::int64_t, std::uint64_t> number;
  for (const auto& [root, id] : first) number[id] = 0;
  std::uint64_t next = 0;
  for (auto& [id, cluster] : number) cluster = next++;
  std::vector<RowCount> result;
  for (std::uint64_t row = 0; row < rows; ++row)
    result.push_back(
        {left_.id(row), role[row] == 0 ? 0 : number[first[group[row]]] * 4 + role[row]});
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<double> distances_of_a_row(const Points& points, Metric metric) {
  std::vector<double> distances, a(points.dims()), b(points.dims());
  for (std::uint64_t p = 0; p < points.rows() && distances.empty(); ++p)
    for (std::uint64_t q = 0; q < points.rows(); ++q) {
      const double distance =
          definition_of_distance(metric, points.row(p, a), points.row(q, b), points.dims());
      if (p != q && distance <= kMax) distances.push_back(distance);
    }
  std::sort(distances.begin(), distances.end());
  return distances;
}

}  // namespace gpujoin::test
