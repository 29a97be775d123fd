#include "engine/strategy.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <new>
#include <vector>

#include "core/threshold.h"
#include "engine/sample.h"

namespace gpujoin {
namespace {

// Of many columns only those that vary most are looked at as index columns.
constexpr std::size_t kMaxConsideredColumns = 16;

/// The sampled values of the columns that may be indexed, one array a column.
struct SampledColumn {
  std::uint32_t column;
  std::vector<double> left;
  std::vector<double> right;

  double difference(SamplePair pair) const {
    return std::fabs(left[pair.left] - right[pair.right]);
  }
};

/// The variance of each column over the sampled rows, up to a factor. Reads row by row, as the data
/// lies.
std::vector<double> sampled_variances(const Dataset& data, const std::vector<std::uint64_t>& rows) {
  std::vector<double> mean(data.dims), squares(data.dims), count(data.dims);
  for (const std::uint64_t row : rows) {
    for (std::uint32_t d = 0; d < data.dims; ++d) {
      const double x = coordinate(data, row, d);
      if (!std::isfinite(x)) continue;
      const double delta = x - mean[d];
      mean[d] += delta / ++count[d];
      squares[d] += delta * (x - mean[d]);
    }
  }
  return squares;
}

std::vector<double> sampled_values(const Dataset& data, const std::vector<std::uint64_t>& rows,
                                   std::uint32_t column) {
  std::vector<double> values(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) values[i] = coordinate(data, rows[i], column);
  return values;
}

std::vector<SampledColumn> sampled_columns(const JoinRequest& request, const Sample& sample,
                                           bool reorder) {
  const std::uint32_t dims = request.left.dims;
  const Dataset& right = request.self_join ? request.left : request.right;
  std::vector<std::uint32_t> considered(dims);
  for (std::uint32_t d = 0; d < dims; ++d) considered[d] = d;
  if (reorder && dims > kMaxConsideredColumns) {
    const std::vector<double> variance = sampled_variances(request.left, sample.left);
    std::stable_sort(considered.begin(), considered.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return variance[a] > variance[b]; });
  }
  considered.resize(std::min<std::size_t>(dims, kMaxConsideredColumns));
  std::vector<SampledColumn> columns;
  for (const std::uint32_t d : considered) {
    SampledColumn column{d, sampled_values(request.left, sample.left, d), {}};
    column.right = request.self_join ? column.left : sampled_values(right, sample.right, d);
    columns.push_back(std::move(column));
  }
  return columns;
}

double count_within(const SampledColumn& column, const std::vector<SamplePair>& pairs,
                    double distance) {
  return static_cast<double>(std::count_if(pairs.begin(), pairs.end(), [&](SamplePair pair) {
    return column.difference(pair) <= distance;
  }));
}

void keep_within(const SampledColumn& column, std::vector<SamplePair>& pairs, double distance) {
  std::erase_if(pairs, [&](SamplePair pair) { return !(column.difference(pair) <= distance); });
}

/// Takes the column that leaves the fewest pairs within `distance`; without `reorder`, the first
/// one.
SampledColumn take_most_selective(std::vector<SampledColumn>& columns,
                                  const std::vector<SamplePair>& pairs, double distance,
                                  bool reorder) {
  auto best = columns.begin();
  if (reorder && columns.size() > 1) {
    double fewest = INFINITY;
    for (auto column = columns.begin(); column != columns.end(); ++column) {
      const double left = count_within(*column, pairs, distance);
      if (left < fewest) {
        fewest = left;
        best = column;
      }
    }
  }
  SampledColumn taken = std::move(*best);
  columns.erase(best);
  return taken;
}

/// What a candidate costs; of many dimensions most are never looked at.
double distance_ns(const WalkCosts& costs, std::uint32_t dims) {
  return costs.candidate + costs.dimension * std::min<double>(dims, 4 * kMaxDirectDimensions);
}

/// What a grid of some number of dimensions is expected to cost, from the pairs of the sample that
/// survive it.
struct GridEstimate {
  double candidates_per_point;
  double cost_per_point;
};

GridEstimate estimate_grid(const WalkCosts& costs, double right_rows, std::uint32_t dims,
                           std::uint32_t grid_dims, double adjacent, double same_cell,
                           double candidates, double all_pairs) {
  const double neighbors = std::pow(3.0, grid_dims);
  const double cell_points = 1 + right_rows * same_cell / all_pairs;
  const double nonempty = std::min(neighbors, 1 + right_rows * adjacent / all_pairs / cell_points);
  const double candidates_per_point = right_rows * candidates / all_pairs;
  const double lookups = grid_dims == 0 ? 0 : neighbors / cell_points;
  return {candidates_per_point, neighbors * costs.neighbor + nonempty * costs.window +
                                    lookups * costs.lookup +
                                    candidates_per_point * distance_ns(costs, dims)};
}

double walk_ms(const Strategy& strategy, double left_rows, const GridEstimate& estimate) {
  const double share = strategy.access_pattern == AccessPattern::kFull ? 1 : 0.5;
  return share * left_rows * estimate.cost_per_point / 1e6;
}

AccessPattern choose_pattern(const JoinRequest& request) {
  // Two datasets are not symmetric, and counts per row belong to the point that looks around.
  if (!request.self_join || request.output == Output::kCountPerRow) return AccessPattern::kFull;
  if (request.knobs.access_pattern != AccessPattern::kAuto &&
      request.pairs != PairSelection::kUnordered)
    return request.knobs.access_pattern;
  return request.knobs.access_pattern == AccessPattern::kUnicomp ? AccessPattern::kUnicomp
                                                                 : AccessPattern::kLinearId;
}

}  // namespace

Strategy choose_strategy(const JoinRequest& request, const WalkCosts& costs) {
  const Knobs& knobs = request.knobs;
  const std::uint32_t dims = request.left.dims;
  Strategy strategy{};
  strategy.sort_column = kNoColumn;
  strategy.access_pattern = choose_pattern(request);
  strategy.cell_order =
      knobs.cell_order == CellOrder::kAuto ? CellOrder::kLinear : knobs.cell_order;
  strategy.reorder_dimensions = knobs.reorder_dimensions != Switch::kOff;
  strategy.screened = dims > kMaxDirectDimensions || knobs.short_circuit == Switch::kOn;
  strategy.short_circuit = strategy.screened && knobs.short_circuit != Switch::kOff;

  const Sample sample = take_sample(request);
  const double right_rows =
      static_cast<double>(request.self_join ? request.left.rows : request.right.rows);
  const double left_rows = static_cast<double>(request.left.rows);
  const double all_pairs = std::max<double>(1, static_cast<double>(sample.pairs.size()));
  strategy.estimated_pairs =
      left_rows * right_rows * static_cast<double>(count_matches(request, sample)) / all_pairs;

  if (knobs.index == IndexMethod::kNone) {
    strategy.index = IndexMethod::kNone;
    strategy.estimated_candidates = left_rows * right_rows;
    strategy.estimated_ms = walk_ms(
        strategy, left_rows,
        estimate_grid(costs, right_rows, dims, 0, all_pairs, all_pairs, all_pairs, all_pairs));
    std::snprintf(strategy.reason, sizeof strategy.reason, "brute force, as gpujoin.index asks");
    return strategy;
  }

  const double reach = make_threshold(request.metric, request.eps).reach;
  const bool reorder = strategy.reorder_dimensions;
  std::vector<SampledColumn> columns = sampled_columns(request, sample, reorder);
  // Pairs that survive the grid, and of those the ones that the sorted column keeps too.
  std::vector<SamplePair> adjacent = sample.pairs;
  std::vector<SamplePair> candidates = sample.pairs;
  std::vector<SamplePair> same_cell = sample.pairs;

  const std::uint32_t most_dims = std::min(dims, kMaxGridDimensions);
  const std::uint32_t forced_dims = std::min(knobs.indexed_dimensions, most_dims);
  if (knobs.sort_unindexed != Switch::kOff && forced_dims < dims) {
    const SampledColumn sorted = take_most_selective(columns, candidates, reach, reorder);
    strategy.sort_column = static_cast<std::int32_t>(sorted.column);
    keep_within(sorted, candidates, reach);
  }

  GridEstimate best{};
  Strategy grid = strategy;  // grows by one dimension a step; the cheapest step is kept
  for (std::uint32_t k = 0;; ++k) {
    const GridEstimate estimate = estimate_grid(
        costs, right_rows, dims, k, static_cast<double>(adjacent.size()),
        static_cast<double>(same_cell.size()), static_cast<double>(candidates.size()), all_pairs);
    const bool forced = forced_dims > 0 && k == forced_dims;
    if (k == 0 || forced || (forced_dims == 0 && estimate.cost_per_point < best.cost_per_point)) {
      best = estimate;
      strategy = grid;
    }
    if (forced || k == most_dims || columns.empty()) break;
    // Points of adjacent cells of width w differ by up to 2w, and differ by 1.5w or less as often.
    const SampledColumn next = take_most_selective(columns, candidates, 1.5 * reach, reorder);
    keep_within(next, adjacent, 1.5 * reach);
    keep_within(next, candidates, 1.5 * reach);
    keep_within(next, same_cell, 0.5 * reach);
    grid.grid_columns[k] = next.column;
    grid.grid_dims = k + 1;
  }

  strategy.estimated_candidates = left_rows * best.candidates_per_point;
  strategy.estimated_ms = walk_ms(strategy, left_rows, best);
  const bool useless = knobs.index == IndexMethod::kAuto && strategy.grid_dims == 0 &&
                       best.candidates_per_point > 0.9 * right_rows;
  strategy.index = useless ? IndexMethod::kNone : IndexMethod::kGrid;
  if (useless) {
    strategy.sort_column = kNoColumn;
    std::snprintf(strategy.reason, sizeof strategy.reason,
                  "no column separates the points at this eps");
  } else {
    std::snprintf(strategy.reason, sizeof strategy.reason,
                  "about %.3g candidates a point expected of %.3g points",
                  best.candidates_per_point, right_rows);
  }
  return strategy;
}

double estimate_core_ms(const JoinRequest& request, double enough_ms) {
  constexpr double kIndexMsPerRow = 130e-6;
  const auto left_rows = static_cast<double>(request.left.rows);
  const auto right_rows =
      static_cast<double>(request.self_join ? request.left.rows : request.right.rows);
  if (!check_request(request).ok() || left_rows == 0 || right_rows == 0) return 0;
  const double index_ms = kIndexMsPerRow * (left_rows + (request.self_join ? 0 : right_rows));
  const double brute_force_ms =
      left_rows * right_rows * distance_ns(kCoreWalkCosts, request.left.dims) / 1e6;
  if (index_ms + brute_force_ms < enough_ms) return index_ms + brute_force_ms;
  try {
    return index_ms + choose_strategy(request).estimated_ms;
  } catch (const std::bad_alloc&) {
    return index_ms;
  }
}

const char* to_string(IndexMethod method) {
  switch (method) {
    case IndexMethod::kGrid:
      return "grid";
    case IndexMethod::kNone:
      return "none";
    default:
      return "auto";
  }
}

const char* to_string(AccessPattern pattern) {
  switch (pattern) {
    case AccessPattern::kFull:
      return "full";
    case AccessPattern::kLinearId:
      return "linear_id";
    case AccessPattern::kUnicomp:
      return "unicomp";
    default:
      return "auto";
  }
}

const char* to_string(CellOrder order) {
  switch (order) {
    case CellOrder::kLinear:
      return "linear";
    case CellOrder::kZOrder:
      return "zorder";
    case CellOrder::kHilbert:
      return "hilbert";
    default:
      return "auto";
  }
}

const char* to_string(Metric metric) {
  switch (metric) {
    case Metric::kL1:
      return "l1";
    case Metric::kLInf:
      return "linf";
    default:
      return "l2";
  }
}

}  // namespace gpujoin
