#include "engine/strategy/outliers.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

namespace gpujoin {
namespace {

constexpr double kBeyondRange = 4;
constexpr double kBeyondRows = 16;

/// How many of `count` sampled values may be outliers at one end.
std::size_t most_outliers(std::size_t count, std::size_t one_in) {
  constexpr std::size_t kTooFew = 16;
  return count < kTooFew ? 0 : std::max<std::size_t>(1, count / one_in);
}

/// The extent of the values but for most_outliers() at either end; empty where there is none.
Extent inner_extent(std::vector<double> values) {
  std::erase_if(values, [](double x) { return !std::isfinite(x); });
  if (values.empty()) return kNoExtent;
  const std::size_t out = most_outliers(values.size(), kFewOutliers);
  if (out == 0) return kEverywhere;
  const auto from_low = values.begin() + static_cast<std::ptrdiff_t>(out);
  std::nth_element(values.begin(), from_low, values.end());
  const double low = *from_low;
  const auto from_high = values.end() - 1 - static_cast<std::ptrdiff_t>(out);
  std::nth_element(from_low, from_high, values.end());
  return {low, *from_high};
}

template <class T>
const T* point_of(SampledRow row) {
  return point<T>(*row.data, row.row);
}

/// Calls visit(point) with the coordinates of a row, of their own type.
template <class Visit>
void with_point(SampledRow row, const Visit& visit) {
  if (row.data->scalar == ScalarType::kFloat32)
    visit(point_of<float>(row));
  else
    visit(point_of<double>(row));
}

/// A place amid the rows: in each column the median of nine rows.
std::vector<double> place_amid(const std::vector<SampledRow>& rows, std::uint32_t dims) {
  constexpr std::size_t kRows = 9;
  std::vector<double> place(dims);
  std::array<double, kRows> values;
  for (std::uint32_t d = 0; d < dims; ++d) {
    for (std::size_t i = 0; i < kRows; ++i) {
      const SampledRow row = rows[(2 * i + 1) * rows.size() / (2 * kRows)];
      values[i] = coordinate(*row.data, row.row, d);
    }
    std::replace_if(
        values.begin(), values.end(), [](double x) { return std::isnan(x); }, INFINITY);
    std::nth_element(values.begin(), values.begin() + kRows / 2, values.end());
    place[d] = values[kRows / 2];
  }
  return place;
}

/// Half of what a row lies away from a place in the column in which it lies furthest, for a whole
/// may overflow; NaN where a coordinate is not finite. Several columns side by side.
template <class T>
double half_away(const T* point, const std::vector<double>& place) {
  constexpr std::size_t kLanes = 8;
  double most[kLanes] = {}, zero[kLanes] = {};
  const auto look = [&](std::size_t d, std::size_t lane) {
    const double away = std::fabs(static_cast<double>(point[d]) / 2 - place[d] / 2);
    most[lane] = away > most[lane] ? away : most[lane];
    zero[lane] += away * 0;
  };
  std::size_t d = 0;
  for (; d + kLanes <= place.size(); d += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) look(d + lane, lane);
  for (std::size_t lane = 0; d < place.size(); ++d, ++lane) look(d, lane);
  const double sum = std::accumulate(zero, zero + kLanes, 0.0);
  return sum == 0 ? *std::max_element(most, most + kLanes) : static_cast<double>(NAN);
}

/// Sums of differences from an origin and of their squares, and extents, by column.
template <class T>
void add_row(const T* __restrict point, std::size_t dims, const double* __restrict origin,
             double* __restrict sum, double* __restrict squares, double* __restrict low,
             double* __restrict high) {
  for (std::size_t d = 0; d < dims; ++d) {
    const auto x = static_cast<double>(point[d]);
    const double difference = x - origin[d];
    sum[d] += difference;
    squares[d] += difference * difference;
    low[d] = x < low[d] ? x : low[d];
    high[d] = x > high[d] ? x : high[d];
  }
}

}  // namespace

Extent ordinary_range(const std::vector<double>& left, const std::vector<double>* right) {
  Extent range = inner_extent(left);
  if (right != nullptr) {
    const Extent other = inner_extent(*right);
    range = {std::min(range.low, other.low), std::max(range.high, other.high)};
  }
  if (!(range.low <= range.high)) return kEverywhere;
  const double beyond = kBeyondRange * (range.high - range.low);  // may be infinite
  return {range.low - beyond, range.high + beyond};
}

std::vector<SampledRow> spread_rows(const Dataset& data, const std::vector<std::uint64_t>& rows) {
  constexpr std::size_t kEnoughCoordinates = std::size_t{1} << 18, kFewestRows = 64;
  const std::size_t wanted = std::max(kFewestRows, kEnoughCoordinates / std::max(1u, data.dims));
  const std::size_t step = std::max<std::size_t>(1, rows.size() / wanted);
  std::vector<SampledRow> spread;
  for (std::size_t i = 0; i < rows.size(); i += step) spread.push_back({&data, rows[i]});
  return spread;
}

std::vector<SampledRow> spread_rows(const Sides& sides, const std::vector<std::uint64_t>& left,
                                    const std::vector<std::uint64_t>& right) {
  std::vector<SampledRow> spread = spread_rows(sides.left(), left);
  if (sides.self_join()) return spread;
  for (const SampledRow row : spread_rows(sides.right(), right)) spread.push_back(row);
  return spread;
}

std::vector<SampledRow> ordinary_rows(std::vector<SampledRow> rows, std::uint32_t dims,
                                      std::size_t one_in) {
  if (rows.empty()) return rows;
  std::vector<double> place = place_amid(rows, dims), away, sorted;
  for (double& x : place)
    if (!std::isfinite(x)) x = 0;  // most of nine rows are not finite
  for (const SampledRow row : rows)
    with_point(row, [&](const auto* point) { away.push_back(half_away(point, place)); });
  std::copy_if(away.begin(), away.end(), std::back_inserter(sorted),
               [](double x) { return !std::isnan(x); });
  double most = INFINITY;
  if (const std::size_t out = most_outliers(sorted.size(), one_in); out > 0) {
    const auto ordinary = sorted.end() - 1 - static_cast<std::ptrdiff_t>(out);
    std::nth_element(sorted.begin(), ordinary, sorted.end());
    if (*ordinary > 0) most = kBeyondRows * *ordinary;  // 0: nearly all rows are the same
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (away[i] <= most) rows[kept++] = rows[i];
  rows.resize(kept);
  return rows;
}

ColumnStatistics column_statistics(const std::vector<SampledRow>& rows, std::uint32_t dims) {
  const std::vector<double> zeros(dims);
  ColumnStatistics columns{zeros, zeros, zeros, zeros};
  if (rows.empty()) return columns;
  std::vector<double> origin(dims), sum(dims), squares(dims);
  with_point(rows.front(), [&](const auto* point) {
    for (std::uint32_t d = 0; d < dims; ++d) origin[d] = static_cast<double>(point[d]);
  });
  columns.low = columns.high = origin;
  for (const SampledRow row : rows)
    with_point(row, [&](const auto* point) {
      add_row(point, dims, origin.data(), sum.data(), squares.data(), columns.low.data(),
              columns.high.data());
    });
  const auto count = static_cast<double>(rows.size());
  for (std::uint32_t d = 0; d < dims; ++d) {
    const double mean = origin[d] + sum[d] / count;
    const bool amid = mean >= columns.low[d] && mean <= columns.high[d];
    columns.mean[d] = amid ? mean : columns.low[d] / 2 + columns.high[d] / 2;
    const double variance = squares[d] - sum[d] * sum[d] / count;
    columns.variance[d] = std::isfinite(variance) ? variance : DBL_MAX;
  }
  return columns;
}

OrdinarySample ordinary_sample(const Sides& sides, const std::vector<std::uint64_t>& left,
                               const std::vector<std::uint64_t>& right) {
  const std::uint32_t dims = sides.left().dims;
  std::vector<SampledRow> rows = ordinary_rows(spread_rows(sides, left, right), dims);
  ColumnStatistics columns = column_statistics(rows, dims);
  return {std::move(rows), std::move(columns)};
}

std::vector<std::uint32_t> by_variance(const ColumnStatistics& columns) {
  std::vector<std::uint32_t> order(columns.variance.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return columns.variance[a] > columns.variance[b];
  });
  return order;
}

}  // namespace gpujoin
