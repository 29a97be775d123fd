#include "engine/strategy.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <new>
#include <vector>

#include "core/threshold.h"
#include "core/tile_screen.h"
#include "engine/directions.h"
#include "engine/reference_points.h"
#include "engine/sample.h"

namespace gpujoin {
namespace {

// Of many columns only those that vary most are looked at as index columns.
constexpr std::size_t kMaxConsideredColumns = 16;

// As many of the sampled pairs choose between columns; all of them estimate what comes of it.
constexpr std::size_t kDecidingPairs = std::size_t{1} << 15;

// Columns that tiles are cut along, unless a knob says more or fewer: measured to be best, or close
// to it, from 6 to 90 dimensions.
constexpr std::uint32_t kTileColumns = 6;

// Engines name points of tiles in 31 bits.
constexpr double kMostTileRows = 0x1p31 - kScreenTile;

// Weighing reference points takes some milliseconds itself.
constexpr double kWorthReferencePointsMs = 10;

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

/// The distances to each reference point, as columns after those of the data.
std::vector<SampledColumn> sampled_distances(const JoinRequest& request, const Sample& sample,
                                             const ReferencePoints& references) {
  const auto distances = [&](const Dataset& data, const std::vector<std::uint64_t>& rows,
                             std::uint32_t number) {
    std::vector<double> values(rows.size(), NAN);
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (is_finite_row(data, rows[i]))
        reference_distances(references, number, data, rows[i], rows[i] + 1, &values[i]);
    return values;
  };
  std::vector<SampledColumn> columns;
  for (std::uint32_t number = 0; number < references.count; ++number) {
    SampledColumn column{
        request.left.dims + number, distances(request.left, sample.left, number), {}};
    column.right = request.self_join ? column.left : distances(request.right, sample.right, number);
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

constexpr std::uint32_t kDecidingDims = 4 * kMaxDirectDimensions;

/// What a candidate costs; of many dimensions most are never looked at, unless it is a match.
double distance_ns(const WalkCosts& costs, std::uint32_t dims) {
  return costs.candidate + costs.dimension * std::min(dims, kDecidingDims);
}

double match_ns(const WalkCosts& costs, std::uint32_t dims) {
  return costs.dimension * (dims - std::min(dims, kDecidingDims));
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

/// Around each sampled value, the width of a slice that holds one of `slices` equal shares of all.
std::vector<double> slice_widths(const std::vector<double>& values, double slices) {
  std::vector<double> sorted;
  for (const double x : values)
    if (std::isfinite(x)) sorted.push_back(x);
  std::sort(sorted.begin(), sorted.end());
  const auto half =
      static_cast<std::ptrdiff_t>(static_cast<double>(sorted.size()) / slices / 2 + 0.5);
  std::vector<double> widths(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    const std::ptrdiff_t rank =
        std::lower_bound(sorted.begin(), sorted.end(), values[i]) - sorted.begin();
    const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(sorted.size()) - 1;
    widths[i] =
        sorted[std::min(last, rank + half)] - sorted[std::max<std::ptrdiff_t>(0, rank - half)];
  }
  return widths;
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

/// The directions of some rows. `rows` become their places among those, which `directions` holds.
Dataset sampled_directions(const Dataset& data, std::uint32_t dims,
                           std::vector<std::uint64_t>& rows, std::vector<float>& directions) {
  directions.resize(rows.size() * dims);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    write_direction(data, rows[i], directions.data() + i * dims);
    rows[i] = i;
  }
  return {directions.data(), nullptr, rows.size(), dims, ScalarType::kFloat32};
}

/// The sample, and plans of each method that rest on it.
class Planner {
 public:
  Planner(const JoinRequest& request, const WalkCosts& costs)
      : request_(request),
        indexed_(request),
        costs_(costs),
        sample_(take_sample(request)),
        left_rows_(static_cast<double>(request.left.rows)),
        right_rows_(
            static_cast<double>(request.self_join ? request.left.rows : request.right.rows)),
        all_pairs_(std::max<double>(1, static_cast<double>(sample_.pairs.size()))),
        matches_(static_cast<double>(count_matches(request, sample_))) {
    if (request.metric == Metric::kCosine) index_directions();
    reach_ = make_threshold(indexed_.metric, indexed_.eps).reach;
    const std::size_t step = 1 + sample_.pairs.size() / kDecidingPairs;
    for (std::size_t i = 0; i < sample_.pairs.size(); i += step)
      deciding_.push_back(sample_.pairs[i]);
  }

  /// Whether tiles can serve: screens by dot products know L2 only, and directions.
  bool knows_tiles() const {
    return indexed_.metric == Metric::kL2 && costs_.tile_pair > 0 &&
           std::max(left_rows_, right_rows_) < kMostTileRows;
  }

  Strategy plan_grid() const;
  Strategy plan_reference_points() const;
  Strategy plan_tiles() const;
  Strategy plan_none() const;

 private:
  void index_directions();
  Strategy start(IndexMethod index) const;
  Strategy plan_cells(Strategy strategy, std::vector<SampledColumn> columns, double reach,
                      double point_ns) const;
  void finish(Strategy& strategy, double candidates, double cost_per_point) const;
  double count_meeting_tiles(const std::vector<SampledColumn>& columns) const;

  const JoinRequest& request_;
  JoinRequest indexed_;  // what an index sees of it: its points, or the directions of the sample
  std::vector<float> left_directions_, right_directions_;
  const WalkCosts& costs_;
  Sample sample_;  // rows are those of indexed_
  std::vector<SamplePair> deciding_;
  double left_rows_;
  double right_rows_;
  double all_pairs_;
  double matches_;  // of the sample's pairs
  double reach_;
};

void Planner::index_directions() {
  const std::uint32_t dims = request_.left.dims;
  indexed_ = join_of_directions(
      request_, sampled_directions(request_.left, dims, sample_.left, left_directions_),
      request_.self_join
          ? Dataset{}
          : sampled_directions(request_.right, dims, sample_.right, right_directions_));
  if (request_.self_join) sample_.right = sample_.left;
}

/// What all plans have in common.
Strategy Planner::start(IndexMethod index) const {
  const Knobs& knobs = request_.knobs;
  Strategy strategy{};
  strategy.index = index;
  strategy.sort_column = kNoColumn;
  strategy.access_pattern = choose_pattern(request_);
  strategy.cell_order =
      knobs.cell_order == CellOrder::kAuto ? CellOrder::kLinear : knobs.cell_order;
  strategy.reorder_dimensions = knobs.reorder_dimensions != Switch::kOff;
  strategy.screened = request_.left.dims > kMaxDirectDimensions ||
                      knobs.short_circuit == Switch::kOn || request_.metric == Metric::kCosine;
  strategy.short_circuit = strategy.screened && knobs.short_circuit != Switch::kOff;
  strategy.estimated_pairs = left_rows_ * right_rows_ * matches_ / all_pairs_;
  return strategy;
}

/// Sets the estimate: candidates of a point, and what a point costs in nanoseconds.
void Planner::finish(Strategy& strategy, double candidates, double cost_per_point) const {
  const double share = strategy.access_pattern == AccessPattern::kFull ? 1 : 0.5;
  if (strategy.index != IndexMethod::kTiles)
    cost_per_point +=
        strategy.estimated_pairs / std::max(1.0, left_rows_) * match_ns(costs_, request_.left.dims);
  strategy.estimates[static_cast<int>(strategy.index)] = {
      left_rows_ * candidates, share * left_rows_ * cost_per_point / 1e6};
}

Strategy Planner::plan_none() const {
  Strategy strategy = start(IndexMethod::kNone);
  finish(strategy, right_rows_, right_rows_ * distance_ns(costs_, request_.left.dims));
  return strategy;
}

Strategy Planner::plan_grid() const {
  const Strategy strategy = start(IndexMethod::kGrid);
  return plan_cells(strategy, sampled_columns(indexed_, sample_, strategy.reorder_dimensions),
                    reach_, 0);
}

Strategy Planner::plan_reference_points() const {
  const Knobs& knobs = request_.knobs;
  Strategy strategy = start(IndexMethod::kReferencePoints);
  strategy.reference_points = reference_point_count(knobs);
  strategy.reference_placement = knobs.reference_placement == ReferencePlacement::kAuto
                                     ? ReferencePlacement::kOuter
                                     : knobs.reference_placement;
  const ReferencePoints references = place_reference_points(
      indexed_, sample_, strategy.reference_points, strategy.reference_placement);
  const double reach = reference_reach(indexed_.eps, references.dims, references.frame, false);
  // One sum after the other, where candidates are compared several at a time.
  const double distances_ns = 4 * costs_.dimension * references.count * references.dims;
  return plan_cells(strategy, sampled_distances(indexed_, sample_, references), reach,
                    distances_ns);
}

/// Of `columns`, in which points within eps differ by at most `reach`: which one is sorted and
/// which ones make up the grid. `point_ns` is what a point costs besides.
Strategy Planner::plan_cells(Strategy strategy, std::vector<SampledColumn> columns, double reach,
                             double point_ns) const {
  const Knobs& knobs = request_.knobs;
  const bool reorder = strategy.reorder_dimensions;
  // Pairs that survive the grid, and of those the ones that the sorted column keeps too. In many
  // dimensions little depends on how many they are.
  const std::uint32_t dims = request_.left.dims;
  const std::vector<SamplePair>& all = dims > kMaxDirectDimensions ? deciding_ : sample_.pairs;
  const auto all_pairs = std::max<double>(1, static_cast<double>(all.size()));
  std::vector<SamplePair> adjacent = all;
  std::vector<SamplePair> candidates = all;
  std::vector<SamplePair> same_cell = all;
  std::vector<SamplePair> deciding = deciding_;

  const auto column_count = static_cast<std::uint32_t>(columns.size());
  const std::uint32_t most_dims = std::min(column_count, kMaxGridDimensions);
  const std::uint32_t forced_dims = std::min(knobs.indexed_dimensions, most_dims);
  if (knobs.sort_unindexed != Switch::kOff && forced_dims < column_count) {
    const SampledColumn sorted = take_most_selective(columns, deciding, reach, reorder);
    strategy.sort_column = static_cast<std::int32_t>(sorted.column);
    keep_within(sorted, candidates, reach);
    keep_within(sorted, deciding, reach);
  }

  GridEstimate best{};
  Strategy grid = strategy;  // grows by one dimension a step; the cheapest step is kept
  for (std::uint32_t k = 0;; ++k) {
    const GridEstimate estimate = estimate_grid(
        costs_, right_rows_, dims, k, static_cast<double>(adjacent.size()),
        static_cast<double>(same_cell.size()), static_cast<double>(candidates.size()), all_pairs);
    const bool forced = forced_dims > 0 && k == forced_dims;
    if (k == 0 || forced || (forced_dims == 0 && estimate.cost_per_point < best.cost_per_point)) {
      best = estimate;
      strategy = grid;
    }
    if (forced || k == most_dims || columns.empty()) break;
    // Points of adjacent cells of width w differ by up to 2w, and differ by 1.5w or less as often.
    const SampledColumn next = take_most_selective(columns, deciding, 1.5 * reach, reorder);
    keep_within(next, deciding, 1.5 * reach);
    keep_within(next, adjacent, 1.5 * reach);
    keep_within(next, candidates, 1.5 * reach);
    keep_within(next, same_cell, 0.5 * reach);
    grid.grid_columns[k] = next.column;
    grid.grid_dims = k + 1;
  }
  finish(strategy, best.candidates_per_point, best.cost_per_point + point_ns);
  return strategy;
}

/// How many sampled pairs lie in tiles whose boxes come within reach, where the tiles cut each of
/// the columns into equally many slices.
double Planner::count_meeting_tiles(const std::vector<SampledColumn>& columns) const {
  const double tiles = std::max(1.0, right_rows_ / kScreenTile);
  const double slices = std::pow(tiles, 1.0 / static_cast<double>(columns.size()));
  std::vector<std::vector<double>> left_widths, right_widths;
  for (const SampledColumn& column : columns) {
    left_widths.push_back(slice_widths(column.left, slices));
    right_widths.push_back(request_.self_join ? left_widths.back()
                                              : slice_widths(column.right, slices));
  }
  return static_cast<double>(
      std::count_if(deciding_.begin(), deciding_.end(), [&](SamplePair pair) {
        double squares = 0;
        for (std::size_t c = 0; c < columns.size() && squares <= reach_ * reach_; ++c) {
          // On average a point lies in the middle of its slice.
          const double gap = columns[c].difference(pair) -
                             (left_widths[c][pair.left] + right_widths[c][pair.right]) / 2;
          if (gap > 0) squares += gap * gap;
        }
        return squares <= reach_ * reach_;
      }));
}

Strategy Planner::plan_tiles() const {
  const Knobs& knobs = request_.knobs;
  const std::uint32_t dims = request_.left.dims;
  Strategy strategy = start(IndexMethod::kTiles);
  // Half of a matrix of tiles serves counts as well.
  if (request_.self_join) strategy.access_pattern = AccessPattern::kLinearId;
  strategy.screened = true;
  if (knobs.cell_order == CellOrder::kAuto) strategy.cell_order = CellOrder::kHilbert;

  const bool reorder = strategy.reorder_dimensions;
  std::vector<SampledColumn> columns = sampled_columns(indexed_, sample_, reorder);
  std::vector<SampledColumn> taken;
  std::vector<SamplePair> left = deciding_;
  const std::uint32_t forced_dims = knobs.indexed_dimensions;
  const std::uint32_t most_dims =
      std::min({forced_dims > 0 ? forced_dims : kTileColumns, dims, kMaxGridDimensions});
  while (taken.size() < most_dims) {
    const SampledColumn next = take_most_selective(columns, left, reach_, reorder);
    // A column that separates no points would only take the curve's bits from the others.
    const std::size_t before = left.size();
    keep_within(next, left, reach_);
    const bool separates = static_cast<double>(left.size()) < 0.95 * static_cast<double>(before);
    if (forced_dims == 0 && !separates && !taken.empty()) break;
    strategy.grid_columns[strategy.grid_dims++] = next.column;
    taken.push_back(next);
  }
  const double candidates = right_rows_ * count_meeting_tiles(taken) /
                            std::max<double>(1, static_cast<double>(deciding_.size()));
  // A short circuit needs all pairs of a block to be far apart, and so comes later than one pair's.
  constexpr std::uint32_t kMostDims = 32 * kMaxDirectDimensions;
  std::uint32_t compared_dims = (dims + 15) / 16 * 16;
  if (strategy.short_circuit) compared_dims = std::min(compared_dims, kMostDims);
  const double box_tests =
      right_rows_ / kScreenTile / kScreenTile;  // a point's share of its tile's
  finish(strategy, candidates,
         candidates * (costs_.tile_pair + costs_.tile_dimension * compared_dims) +
             box_tests * costs_.tile_boxes +
             strategy.estimated_pairs / std::max(1.0, left_rows_) * costs_.tile_match);
  return strategy;
}

void explain(Strategy& strategy, double left_rows, double right_rows, bool asked) {
  if (strategy.index == IndexMethod::kNone) {
    std::snprintf(strategy.reason, sizeof strategy.reason,
                  asked ? "brute force, as gpujoin.index asks"
                        : "no column separates the points at this eps");
    return;
  }
  std::snprintf(strategy.reason, sizeof strategy.reason,
                "about %.3g candidates a point expected of %.3g points",
                strategy.estimate().candidates / std::max(1.0, left_rows), right_rows);
}

}  // namespace

Strategy choose_strategy(const JoinRequest& request, const WalkCosts& costs) {
  const Planner planner(request, costs);
  const auto left_rows = static_cast<double>(request.left.rows);
  const auto right_rows =
      static_cast<double>(request.self_join ? request.left.rows : request.right.rows);
  const IndexMethod asked = request.knobs.index;
  const bool tiles = planner.knows_tiles();

  std::vector<Strategy> plans;
  if (asked == IndexMethod::kNone) {
    plans.push_back(planner.plan_none());
  } else if (asked == IndexMethod::kTiles && tiles) {
    plans.push_back(planner.plan_tiles());
  } else if (asked == IndexMethod::kReferencePoints) {
    plans.push_back(planner.plan_reference_points());
  } else {
    plans.push_back(planner.plan_grid());
    if (asked == IndexMethod::kAuto) {
      if (most_reference_points(request) > 0 &&
          plans.front().estimate().ms > kWorthReferencePointsMs)
        plans.push_back(planner.plan_reference_points());
      if (tiles) plans.push_back(planner.plan_tiles());
      const Strategy& grid = plans.front();
      // An index that leaves most pairs is not worth its building.
      if (grid.grid_dims == 0 && grid.estimate().candidates > 0.9 * left_rows * right_rows)
        plans.push_back(planner.plan_none());
    }
  }
  Strategy best = plans.front();
  for (const Strategy& plan : plans) {
    const bool useless = best.index == IndexMethod::kGrid && plan.index == IndexMethod::kNone;
    if (useless || plan.estimate().ms < best.estimate().ms) best = plan;
  }
  for (const Strategy& plan : plans) best.estimates[static_cast<int>(plan.index)] = plan.estimate();
  explain(best, left_rows, right_rows, asked == best.index);
  return best;
}

double estimate_core_ms(const JoinRequest& request, double enough_ms) {
  constexpr double kIndexMsPerRow = 130e-6;
  const auto left_rows = static_cast<double>(request.left.rows);
  const auto right_rows =
      static_cast<double>(request.self_join ? request.left.rows : request.right.rows);
  if (!check_request(request).ok() || left_rows == 0 || right_rows == 0) return 0;
  const double index_ms = kIndexMsPerRow * (left_rows + (request.self_join ? 0 : right_rows));
  const double brute_force_ms = left_rows * right_rows *
                                (distance_ns(kCoreWalkCosts, request.left.dims) +
                                 match_ns(kCoreWalkCosts, request.left.dims)) /
                                1e6;
  if (index_ms + brute_force_ms < enough_ms) return index_ms + brute_force_ms;
  try {
    return index_ms + choose_strategy(request).estimate().ms;
  } catch (const std::bad_alloc&) {
    return index_ms;
  }
}

const char* to_string(IndexMethod method) {
  switch (method) {
    case IndexMethod::kGrid:
      return "grid";
    case IndexMethod::kReferencePoints:
      return "reference_points";
    case IndexMethod::kTiles:
      return "tiles";
    case IndexMethod::kNone:
      return "none";
    default:
      return "auto";
  }
}

const char* to_string(ReferencePlacement placement) {
  switch (placement) {
    case ReferencePlacement::kOuter:
      return "outer";
    case ReferencePlacement::kInner:
      return "inner";
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
    case Metric::kCosine:
      return "cosine";
    default:
      return "l2";
  }
}

}  // namespace gpujoin
