#include "engine/strategy/planner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/threshold.h"
#include "core/tile_screen.h"
#include "engine/strategy/reference_points.h"

namespace gpujoin {
namespace {

// So many of the sampled pairs choose between columns; all of them estimate the result.
constexpr std::size_t kDecidingPairs = std::size_t{1} << 15;

// Rows sampled of a side. Few pairs get a small sample: choosing must take little of the join.
constexpr double kPairsOfOneSampled = 64;
constexpr std::uint64_t kFewestRows = 128;
constexpr std::uint64_t kFutileRows = 32;
// Clusters are asked for with their index: its columns alone are to be chosen.
constexpr std::uint64_t kFewClusterRows = 1 << 16;

// Columns that tiles are cut along, unless a knob asks for more or fewer: measured to be best, or
// close to it, from 6 to 90 dimensions.
constexpr std::uint32_t kTileColumns = 5;

// The cost of a match of tiles that is only counted, as a share of one that is written: the screen
// leaves few of them open.
constexpr double kCountedMatch = 0.01;

// Engines name points of tiles in 31 bits.
constexpr double kMostTileRows = 0x1p31 - kScreenTile;

constexpr std::uint32_t kDecidingDims = 4 * kMaxDirectDimensions;

/// What a candidate costs. Most of many dimensions are never read, unless it is a match.
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

/// Returns true if comparing all pairs takes no longer than choosing an index would: with few rows
/// of many dimensions.
bool is_choice_futile(const JoinRequest& request, const WalkCosts& costs) {
  constexpr double kSampledNs = 1;  // a sampled pair in one column
  constexpr double kFewTimes = 4;
  constexpr std::uint64_t kCopies = 8;
  const std::uint32_t dims = request.left().dims;
  if (request.knobs.index != IndexMethod::kAuto || request.knobs.indexed_dimensions > 0 ||
      dims <= kMaxDirectDimensions || request.output() == Output::kClusters)
    return false;
  // Without an index both sides are copied as they are.
  const std::uint64_t limit = request.resources.memory_limit;
  if (limit > 0 && request.sides.rows() * dims * sizeof(double) > limit / kCopies) return false;
  const double pairs =
      static_cast<double>(request.left().rows) * static_cast<double>(request.right().rows);
  // Of more pairs some index may leave out enough.
  return pairs < kFewTimes * kDecidingPairs &&
         pairs * distance_ns(costs, dims) <
             std::min(pairs, double{kDecidingPairs}) * kSampledNs * dims;
}

/// How many rows of a side the choice is worth.
std::uint64_t rows_worth(const JoinRequest& request, bool futile) {
  if (futile) return kFutileRows;
  const std::uint64_t left_rows = request.left().rows;
  if (request.output() == Output::kClusters && left_rows < kFewClusterRows) return kFewestRows;
  const double pairs = static_cast<double>(left_rows) * static_cast<double>(request.right().rows);
  const auto rows = static_cast<std::uint64_t>(std::sqrt(pairs / kPairsOfOneSampled));
  return std::clamp(rows, kFewestRows, kSampleRows);
}

/// Whether matches are counted among the pairs that are near each other in all columns considered.
/// In few dimensions comparing a pair takes no longer than a look at its columns.
bool counts_near(const JoinRequest& request) {
  const IndexMethod asked = request.knobs.index;
  return request.left().dims > kMaxDirectDimensions && request.metric() != Metric::kCosine &&
         asked != IndexMethod::kNone && asked != IndexMethod::kReferencePoints;
}

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

}  // namespace

Planner::Planner(const JoinRequest& request, const WalkCosts& costs)
    : request_(request),
      costs_(costs),
      futile_(is_choice_futile(request, costs)),
      worth_(rows_worth(request, futile_)),
      rows_(request, worth_),
      indexed_(rows_.request),
      sample_(take_sample(in_memory(request), worth_)),
      deciding_(sample_, kDecidingPairs),
      left_rows_(static_cast<double>(request.left().rows)),
      right_rows_(static_cast<double>(request.right().rows)),
      all_pairs_(std::max<double>(1, static_cast<double>(sample_.pair_count()))) {
  key_columns_ = with_masks(sampled_keys(in_memory(request_), sample_));
  const bool near = !futile_ && counts_near(request);
  if (!near) matches_ = static_cast<double>(count_matches(in_memory(request), sample_));
  sample_.left = rows_.left;
  sample_.right = rows_.right;
  reach_ = make_threshold(indexed_.metric(), indexed_.eps()).reach;
  // In many dimensions little depends on the number of pairs.
  const std::size_t pairs = sample_.pair_count();
  if (request.left().dims <= kMaxDirectDimensions && pairs > kDecidingPairs)
    every_.emplace(sample_, pairs);
  if (near) matches_ = count_near_matches();
}

/// By the deciding pairs that no column has separated: few, where the columns are many.
double Planner::count_near_matches() {
  PairsLeft left(deciding_);
  for (const Columns* const columns : {&std::as_const(key_columns_), &data_columns()})
    for (const PairMask& mask : columns->near) left.keep(mask);
  std::vector<SampledPair> pairs;
  pairs.reserve(static_cast<std::size_t>(left.count()));
  deciding_.visit(left.mask(), [&](std::size_t one, std::size_t other) {
    pairs.push_back({static_cast<std::uint16_t>(one), static_cast<std::uint16_t>(other)});
  });
  const auto matches = static_cast<double>(count_matches(in_memory(request_), sample_, pairs));
  return matches * all_pairs_ / std::max<double>(1, static_cast<double>(deciding_.count()));
}

bool Planner::wants_tiles() const {
  constexpr std::uint32_t kGridDims = 2;  // where a grid leaves next to nothing to compare
  return knows_tiles() && request_.left().dims > kGridDims &&
         request_.knobs.access_pattern != AccessPattern::kUnicomp;
}

bool Planner::knows_tiles() const {
  return indexed_.metric() == Metric::kL2 && costs_.tile_pair > 0 && request_.keys.count == 0 &&
         std::max(left_rows_, right_rows_) < kMostTileRows;
}

/// What all plans have in common.
Strategy Planner::start(IndexMethod index) const {
  const Knobs& knobs = request_.knobs;
  Strategy strategy{};
  strategy.index = index;
  strategy.sort_column = kNoColumn;
  strategy.access_pattern = pattern_of(request_, index);
  strategy.cell_order =
      knobs.cell_order == CellOrder::kAuto ? CellOrder::kLinear : knobs.cell_order;
  strategy.reorder_dimensions = knobs.reorder_dimensions != Switch::kOff;
  strategy.screened = request_.left().dims > kMaxDirectDimensions ||
                      knobs.short_circuit == Switch::kOn || request_.metric() == Metric::kCosine;
  strategy.short_circuit = strategy.screened && knobs.short_circuit != Switch::kOff;
  strategy.estimated_pairs = left_rows_ * right_rows_ * matches_ / all_pairs_;
  strategy.least_pairs =
      left_rows_ * right_rows_ * std::max(matches_ - std::sqrt(matches_), 0.5) / all_pairs_;
  return strategy;
}

/// What a walk costs for a point: besides its cells and candidates, comparing matches to their last
/// dimension; and again where pairs are written.
double Planner::walk_ns(double cells_and_candidates_ns) const {
  const double matches = right_rows_ * matches_ / all_pairs_;
  return (wants_pairs(request_.output()) ? costs_.writing : 1) *
         (cells_and_candidates_ns + matches * match_ns(costs_, request_.left().dims));
}

/// Sets the estimate: candidates of a point, and what a point costs in nanoseconds.
void Planner::finish(Strategy& strategy, double candidates, double cost_per_point) const {
  const double share = strategy.access_pattern == AccessPattern::kFull ? 1 : 0.5;
  strategy.estimates[static_cast<int>(strategy.index)] = {
      left_rows_ * candidates, share * left_rows_ * cost_per_point / 1e6};
}

Strategy Planner::plan_none() const {
  Strategy strategy = start(IndexMethod::kNone);
  finish(strategy, right_rows_, walk_ns(right_rows_ * distance_ns(costs_, request_.left().dims)));
  return strategy;
}

const OrdinarySample& Planner::ordinary() {
  if (!ordinary_) ordinary_ = ordinary_sample(indexed_.sides, sample_.left, sample_.right);
  return *ordinary_;
}

const Planner::Columns& Planner::data_columns() {
  if (data_columns_.columns.empty()) {
    const bool reorders = request_.left().dims > kMaxConsideredColumns &&
                          request_.knobs.reorder_dimensions != Switch::kOff;
    data_columns_ =
        with_masks(sampled_columns(indexed_, sample_, reach_, reorders ? &ordinary() : nullptr));
  }
  return data_columns_;
}

Planner::Columns Planner::with_masks(std::vector<SampledColumn> columns) const {
  std::vector<PairMask> near;
  near.reserve(columns.size());
  for (const SampledColumn& column : columns) near.push_back(deciding_.within(column, 1));
  return {std::move(columns), std::move(near)};
}

void Planner::Columns::add_to(std::vector<ColumnChoice>* choices) const {
  for (std::size_t i = 0; i < columns.size(); ++i) choices->push_back({&columns[i], &near[i]});
}

Strategy Planner::plan_grid() {
  std::vector<ColumnChoice> choices;
  key_columns_.add_to(&choices);
  data_columns().add_to(&choices);
  return plan_cells(start(IndexMethod::kGrid), std::move(choices), 0);
}

Strategy Planner::plan_reference_points() {
  const Knobs& knobs = request_.knobs;
  Strategy strategy = start(IndexMethod::kReferencePoints);
  strategy.reference_points = reference_point_count(knobs);
  strategy.reference_placement = knobs.reference_placement == ReferencePlacement::kAuto
                                     ? ReferencePlacement::kOuter
                                     : knobs.reference_placement;
  const ReferencePoints references = place_reference_points(
      indexed_.metric(), ordinary(), strategy.reference_points, strategy.reference_placement);
  const double reach = reference_reach(indexed_.eps(), references.dims, references.frame, false);
  // One sum after the other, where candidates are compared several at a time.
  const double distances_ns = 4 * costs_.dimension * references.count * references.dims;
  const Columns distances = with_masks(sampled_distances(indexed_, sample_, references, reach));
  std::vector<ColumnChoice> choices;
  distances.add_to(&choices);
  return plan_cells(strategy, std::move(choices), distances_ns);
}

/// Chooses which one of the columns is sorted and which ones make up the grid [GPU-Join, section
/// 4.1]. `point_ns` is what a point costs besides.
Strategy Planner::plan_cells(Strategy strategy, std::vector<ColumnChoice> choices,
                             double point_ns) const {
  const Knobs& knobs = request_.knobs;
  const bool reorder = strategy.reorder_dimensions;
  // Pairs that survive the grid, and the pairs among them that the sorted column keeps too.
  const std::uint32_t dims = request_.left().dims;
  const SampledPairs& all = every_ ? *every_ : deciding_;
  const auto left_of_all = [&](const ColumnChoice& choice, double reaches) {
    return every_ ? every_->within(*choice.column, reaches) : *choice.mask;
  };
  const auto all_pairs = std::max<double>(1, static_cast<double>(all.count()));
  PairsLeft adjacent(all), candidates(all), same_cell(all), deciding(deciding_);
  const bool cells_cost = costs_.window > 0 || costs_.lookup > 0;

  const auto column_count = static_cast<std::uint32_t>(choices.size());
  const std::uint32_t most_dims = std::min(column_count, kMaxGridDimensions);
  const std::uint32_t forced_dims = std::min(knobs.indexed_dimensions, most_dims);
  if (knobs.sort_unindexed != Switch::kOff && forced_dims < column_count) {
    const ColumnChoice sorted = take_most_selective(choices, deciding, reorder);
    strategy.sort_column = static_cast<std::int32_t>(sorted.column->column);
    strategy.sort_range = sorted.column->range();
    candidates.keep(left_of_all(sorted, 1));
    deciding.keep(*sorted.mask);
  }

  // Points of adjacent cells of width w differ by up to 2w, and differ by 1.5w or less as often.
  constexpr double kAdjacent = 1.5, kSame = 0.5;
  std::vector<PairMask> masks;
  masks.reserve(choices.size());
  for (ColumnChoice& choice : choices) {
    masks.push_back(deciding_.within(*choice.column, kAdjacent));
    choice.mask = &masks.back();
  }
  GridEstimate best{};
  Strategy grid = strategy;  // grows by one dimension a step; the cheapest step is kept
  for (std::uint32_t k = 0;; ++k) {
    const GridEstimate estimate = estimate_grid(costs_, right_rows_, dims, k, adjacent.count(),
                                                same_cell.count(), candidates.count(), all_pairs);
    const bool forced = forced_dims > 0 && k == forced_dims;
    if (k == 0 || forced || (forced_dims == 0 && estimate.cost_per_point < best.cost_per_point)) {
      best = estimate;
      strategy = grid;
    }
    if (forced || k == most_dims || choices.empty()) break;
    const ColumnChoice next = take_most_selective(choices, deciding, reorder);
    const PairMask near = left_of_all(next, kAdjacent);
    deciding.keep(*next.mask);
    candidates.keep(near);
    if (cells_cost) {
      adjacent.keep(near);
      same_cell.keep(all.within(*next.column, kSame));
    }
    grid.grid_columns[k] = next.column->column;
    grid.grid_ranges[k] = next.column->range();
    grid.grid_dims = k + 1;
  }
  finish(strategy, best.candidates_per_point, walk_ns(best.cost_per_point) + point_ns);
  return strategy;
}

/// How many sampled pairs lie in tiles whose boxes come within reach, where the tiles cut each of
/// the columns into equally many intervals.
double Planner::count_meeting_tiles(const std::vector<const SampledColumn*>& columns) const {
  const double tiles = std::max(1.0, right_rows_ / kScreenTile);
  const double slices = std::pow(tiles, 1.0 / static_cast<double>(columns.size()));
  std::vector<std::vector<double>> left_widths, right_widths;
  for (const SampledColumn* const column : columns) {
    left_widths.push_back(slice_widths(column->left_order, slices));
    right_widths.push_back(request_.self_join() ? left_widths.back()
                                                : slice_widths(column->right_order, slices));
  }
  return static_cast<double>(deciding_.count_meeting(columns, left_widths, right_widths, reach_));
}

Strategy Planner::plan_tiles() {
  const Knobs& knobs = request_.knobs;
  const std::uint32_t dims = request_.left().dims;
  Strategy strategy = start(IndexMethod::kTiles);
  strategy.screened = true;
  if (knobs.cell_order == CellOrder::kAuto) strategy.cell_order = CellOrder::kHilbert;

  const bool reorder = strategy.reorder_dimensions;
  std::vector<ColumnChoice> choices;
  data_columns().add_to(&choices);
  std::vector<const SampledColumn*> taken;
  PairsLeft left(deciding_);
  const std::uint32_t forced_dims = knobs.indexed_dimensions;
  const std::uint32_t most_dims =
      std::min({forced_dims > 0 ? forced_dims : kTileColumns, dims, kMaxGridDimensions});
  while (taken.size() < most_dims) {
    const ColumnChoice next = take_most_selective(choices, left, reorder);
    // A column that separates no points would only take the curve's bits from the others.
    const double before = left.count();
    left.keep(*next.mask);
    const bool separates = left.count() < 0.95 * before;
    // Boxes of all columns prove pairs as well, which counts are for.
    const bool proves = dims <= kTileColumns && !wants_pairs(request_.output());
    if (forced_dims == 0 && !separates && !taken.empty() && !proves) break;
    // All bits of the curve for where most points are: those beyond lie at its ends.
    strategy.grid_ranges[strategy.grid_dims] = next.column->sampled_range();
    strategy.grid_columns[strategy.grid_dims++] = next.column->column;
    taken.push_back(next.column);
  }
  const double candidates = right_rows_ * count_meeting_tiles(taken) /
                            std::max<double>(1, static_cast<double>(deciding_.count()));
  // A short circuit needs all pairs of a block to be far apart, and so comes later than one pair's.
  constexpr std::uint32_t kMostDims = 32 * kMaxDirectDimensions;
  std::uint32_t compared_dims = (dims + 15) / 16 * 16;
  if (strategy.short_circuit) compared_dims = std::min(compared_dims, kMostDims);
  const double box_tests =
      right_rows_ / kScreenTile / kScreenTile;  // a point's share of its tile's
  finish(strategy, candidates,
         candidates * (costs_.tile_pair + costs_.tile_dimension * compared_dims) +
             box_tests * costs_.tile_boxes +
             right_rows_ * matches_ / all_pairs_ *
                 (wants_pairs(request_.output()) ? costs_.tile_match
                                                 : kCountedMatch * costs_.tile_match));
  return strategy;
}

double most_brute_force_ms(const JoinRequest& request, const WalkCosts& costs) {
  const std::uint32_t dims = request.left().dims;
  const double pairs =
      static_cast<double>(request.left().rows) * static_cast<double>(request.right().rows);
  return pairs * (distance_ns(costs, dims) + match_ns(costs, dims)) / 1e6;
}

}  // namespace gpujoin
