#include "cpu/small_clusters.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

#include "core/border_rule.h"
#include "core/cluster.h"
#include "core/disjoint_sets.h"
#include "core/grid.h"
#include "core/threshold.h"
#include "cpu/scan/scan.h"
#include "engine/stopwatch.h"

namespace gpujoin::cpu {
namespace {

constexpr std::uint64_t kMostRows = 4096, kMostCoordinates = 16384;
/// Coordinates that are compared at most: more of them are worth another index.
constexpr std::uint64_t kMostCompared = 1 << 18;
constexpr std::uint32_t kMostColumns = 2;  // of the grid
constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// Points are named by position: finite ones by cell, then those that are not.
class SmallClusters final : public Join {
 public:
  explicit SmallClusters(const JoinRequest& request);

  std::uint64_t compared() const { return stats_.candidates * request_.left().dims; }

  Status next_batch(ResultBatch* batch) override;
  void stats(JoinStats* stats) const override { *stats = stats_; }

 private:
  struct Pair {
    std::uint32_t a, b;
  };
  /// Consecutive positions.
  struct Run {
    std::uint32_t begin, end;
  };

  void read_points();
  void lay_grid(const std::vector<std::uint32_t>& rows);
  std::uint32_t cell_of(std::uint32_t row) const;
  void sort_points(const std::vector<std::uint32_t>& rows);
  template <class Visit>
  void for_cells(const Visit& visit) const;
  template <Metric M>
  void find_pairs();
  void unite_pairs();
  void follow(std::uint32_t point, std::uint32_t core);
  void number_clusters();

  const double* point_at(std::uint32_t position) const {
    return coordinates_.data() + std::size_t{position} * request_.left().dims;
  }
  bool is_core(std::uint32_t position) const {
    return neighbors_[position] + std::uint64_t{1} >= request_.min_points();
  }

  const JoinRequest request_;
  const std::uint32_t row_count_;
  const Threshold threshold_;
  bool done_ = false;
  GridGeometry grid_{};
  std::uint32_t points_ = 0;                ///< finite ones
  std::vector<std::uint32_t> starts_;       ///< [cells + 1] their first positions
  std::vector<std::uint32_t> rows_;         ///< by position
  std::vector<double> coordinates_;         ///< [points][dims]
  std::vector<Pair> pairs_;                 ///< of neighbours, each once
  std::vector<std::uint32_t> neighbors_;    ///< by position: how many, itself not counted
  std::vector<std::uint32_t> links_;        ///< of DisjointSets
  std::vector<Neighbor> followed_;          ///< by position: the core row, or kNone
  std::vector<std::int64_t> ids_;           ///< by row
  std::vector<std::uint32_t> row_numbers_;  ///< 0, 1, ...
  std::vector<std::uint64_t> words_;        ///< by row, of pack_cluster()
  JoinStats stats_{};
};

SmallClusters::SmallClusters(const JoinRequest& request)
    : request_(request),
      row_count_(static_cast<std::uint32_t>(request.left().rows)),
      threshold_(make_threshold(request.metric(), request.eps())),
      ids_(row_count_),
      row_numbers_(row_count_) {
  const Stopwatch watch;
  std::iota(row_numbers_.begin(), row_numbers_.end(), 0u);
  for (std::uint32_t row = 0; row < row_count_; ++row) ids_[row] = id_of(request.left(), row);
  read_points();
  stats_.left_rows = stats_.right_rows = row_count_;
  stats_.strategy.index = grid_.dims > 0 ? IndexMethod::kGrid : IndexMethod::kNone;
  stats_.strategy.grid_dims = grid_.dims;
  std::copy_n(grid_.column, grid_.dims, stats_.strategy.grid_columns);
  stats_.strategy.sort_column = kNoColumn;
  stats_.strategy.access_pattern = AccessPattern::kLinearId;
  stats_.strategy.cell_order = CellOrder::kLinear;
  std::snprintf(stats_.strategy.reason, sizeof stats_.strategy.reason,
                grid_.dims > 0 ? "few points: those of neighboring cells are compared"
                               : "few points: each is compared with each");
  stats_.threads = 1;
  std::snprintf(stats_.instruction_set, sizeof stats_.instruction_set, "%s", instruction_set());
  stats_.index_ms = watch.milliseconds();
}

void SmallClusters::read_points() {
  std::vector<std::uint32_t> finite, other;
  for (std::uint32_t row = 0; row < row_count_; ++row)
    (is_finite_row(request_.left(), row) ? finite : other).push_back(row);
  points_ = static_cast<std::uint32_t>(finite.size());
  lay_grid(finite);
  sort_points(finite);
  rows_.insert(rows_.end(), other.begin(), other.end());
  for_cells([this](Run own, Run after, Run above) {
    const std::uint64_t points = own.end - own.begin;
    stats_.candidates += points * (points - 1) / 2 + points * (after.end - after.begin) +
                         points * (above.end - above.begin);
  });
}

/// Over the columns along which the points lie furthest apart. There are about two cells a point at
/// most. Directions have no grid.
void SmallClusters::lay_grid(const std::vector<std::uint32_t>& rows) {
  const Dataset& data = request_.left();
  if (request_.metric() == Metric::kCosine || rows.empty()) return;
  const std::uint32_t dims = std::min(data.dims, kMaxGridDimensions);
  Extent extents[kMaxGridDimensions];
  std::uint32_t columns[kMaxGridDimensions];
  for (std::uint32_t d = 0; d < dims; ++d) {
    columns[d] = d;
    extents[d] = kNoExtent;
    for (const std::uint32_t row : rows) {
      const double x = coordinate(data, row, d);
      include(extents[d], {x, x});
    }
  }
  const auto length = [&](std::uint32_t d) { return extents[d].high - extents[d].low; };
  std::stable_sort(columns, columns + dims,
                   [&](std::uint32_t a, std::uint32_t b) { return length(a) > length(b); });
  const std::uint32_t count = std::min(dims, kMostColumns);
  const double cells = 2 * static_cast<double>(rows.size());
  const double of_column = count == 1 ? cells : std::sqrt(cells);
  Extent chosen[kMostColumns];
  double reaches[kMostColumns];
  constexpr bool kEquals[kMostColumns] = {};
  for (std::uint32_t c = 0; c < count; ++c) {
    chosen[c] = extents[columns[c]];
    reaches[c] =
        std::max(threshold_.reach, std::min<double>(length(columns[c]), DBL_MAX) / of_column);
  }
  grid_ = make_grid(count, columns, chosen, reaches, kEquals);
}

std::uint32_t SmallClusters::cell_of(std::uint32_t row) const {
  std::uint32_t cell = 0;
  for (std::uint32_t d = grid_.dims; d-- > 0;)
    cell = cell * grid_.cells[d] +
           cell_coordinate(grid_, d, coordinate(request_.left(), row, grid_.column[d]));
  return cell;
}

void SmallClusters::sort_points(const std::vector<std::uint32_t>& rows) {
  const Dataset& data = request_.left();
  std::uint32_t cells = 1;
  for (std::uint32_t d = 0; d < grid_.dims; ++d) cells *= grid_.cells[d];
  std::vector<std::uint32_t> cell_of_row(rows.size());
  starts_.assign(cells + 2, 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    cell_of_row[i] = cell_of(rows[i]);
    ++starts_[cell_of_row[i] + 2];
  }
  std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
  rows_.resize(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows_[starts_[cell_of_row[i] + 1]++] = rows[i];
  starts_.pop_back();
  coordinates_.resize(rows.size() * data.dims);
  double* to = coordinates_.data();
  for (const std::uint32_t row : rows_)
    for (std::uint32_t d = 0; d < data.dims; ++d) *to++ = coordinate(data, row, d);
}

/// visit(a cell's points, those of the next cell, those of three cells of the next row). Points
/// near each other lie in neighbouring cells, by the lemma of cell_coordinate(), and of two of
/// these one comes before the other: each pair of candidates is met once.
template <class Visit>
void SmallClusters::for_cells(const Visit& visit) const {
  const std::uint32_t width = grid_.dims > 0 ? grid_.cells[0] : 1;
  const std::uint32_t height = grid_.dims > 1 ? grid_.cells[1] : 1;
  for (std::uint32_t y = 0; y < height; ++y) {
    const std::uint32_t* const row = starts_.data() + std::size_t{y} * width;
    for (std::uint32_t x = 0; x < width; ++x) {
      const Run own{row[x], row[x + 1]};
      if (own.begin == own.end) continue;
      const std::uint32_t left = x > 0 ? x - 1 : 0, end = std::min(x + 2, width);
      const Run above = y + 1 < height ? Run{row[width + left], row[width + end]} : Run{0, 0};
      visit(own, Run{own.end, row[end]}, above);
    }
  }
}

template <Metric M>
void SmallClusters::find_pairs() {
  const std::uint32_t dims = request_.left().dims;
  const double most = threshold_.raw;
  const auto compare = [&](std::uint32_t a, Run others) {
    const double* const point = point_at(a);
    const double* other = point_at(others.begin);
    for (std::uint32_t b = others.begin; b < others.end; ++b, other += dims)
      if (raw_distance<M>(point, other, dims) <= most) pairs_.push_back({a, b});
  };
  for_cells([&](Run own, Run after, Run above) {
    for (std::uint32_t a = own.begin; a < own.end; ++a) {
      compare(a, {a + 1, after.end});
      compare(a, above);
    }
  });
}

/// Makes a point that is no core point follow a core point, if that is the best so far.
void SmallClusters::follow(std::uint32_t point, std::uint32_t core) {
  const Metric metric = request_.metric();
  const Neighbor found{raw_distance(metric, point_at(point), point_at(core), request_.left().dims),
                       rows_[core]};
  Neighbor& best = followed_[point];
  if (links_[point] != point &&
      !is_followed_before(request_.borders(), metric, found, best, ids_.data()))
    return;
  best = found;
  links_[point] = core;
}

void SmallClusters::unite_pairs() {
  neighbors_.assign(row_count_, 0);
  links_ = row_numbers_;
  followed_.resize(row_count_);
  for (const Pair& pair : pairs_) {
    ++neighbors_[pair.a];
    ++neighbors_[pair.b];
  }
  const DisjointSets sets(links_.data());
  for (const Pair& pair : pairs_) {
    const bool a = is_core(pair.a), b = is_core(pair.b);
    if (a && b)
      sets.unite(pair.a, pair.b);
    else if (a)
      follow(pair.b, pair.a);
    else if (b)
      follow(pair.a, pair.b);
  }
}

/// By the first row of each, by id and then by place.
void SmallClusters::number_clusters() {
  const DisjointSets sets(links_.data());
  std::vector<std::uint32_t> positions(row_count_), order = row_numbers_,
                                                    numbers(row_count_, kNone);
  for (std::uint32_t position = 0; position < row_count_; ++position)
    positions[rows_[position]] = position;
  const auto before = [this](std::uint32_t a, std::uint32_t b) {
    return ids_[a] != ids_[b] ? ids_[a] < ids_[b] : a < b;
  };
  if (!std::is_sorted(order.begin(), order.end(), before))
    std::sort(order.begin(), order.end(), before);
  std::uint32_t clusters = 0;
  words_.resize(row_count_);
  for (const std::uint32_t row : order) {
    const std::uint32_t position = positions[row];
    const bool core = is_core(position);
    if (!core && links_[position] == position) {
      words_[row] = pack_cluster({ClusterRole::kNoise, 0});
      continue;
    }
    std::uint32_t& number = numbers[sets.root(position)];
    if (number == kNone) number = clusters++;
    words_[row] = pack_cluster({core ? ClusterRole::kCore : ClusterRole::kBorder, number});
  }
}

Status SmallClusters::next_batch(ResultBatch* batch) {
  if (done_ || row_count_ == 0) return {StatusCode::kEnd};
  const Stopwatch watch;
  if (request_.metric() == Metric::kCosine)
    find_pairs<Metric::kCosine>();
  else
    by_indexed_metric(request_.metric(), [this]<Metric M>() { find_pairs<M>(); });
  unite_pairs();
  number_clusters();
  done_ = true;
  stats_.join_ms = watch.milliseconds();
  stats_.batches = 1;
  *batch = {};
  batch->row_count = row_count_;
  batch->rows = row_numbers_.data();
  batch->counts = words_.data();
  batch->set_ids(ids_.data(), row_count_, ids_.data(), row_count_);
  return {};
}

}  // namespace

std::unique_ptr<Join> open_small_clusters(const JoinRequest& request) {
  const Dataset& data = request.left();
  if (data.rows > kMostRows || data.rows * data.dims > kMostCoordinates || data.file != nullptr)
    return nullptr;
  auto join = std::make_unique<SmallClusters>(request);
  if (join->compared() > kMostCompared) return nullptr;
  return join;
}

}  // namespace gpujoin::cpu
