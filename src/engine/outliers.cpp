#include "engine/outliers.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <numeric>

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
  if (values.empty()) return {INFINITY, -INFINITY};
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
  return static_cast<const T*>(row.data->coordinates) + row.row * row.data->dims;
}

/// Calls visit(point) with the coordinates of a row, of their own type.
template <class Visit>
void with_point(SampledRow row, const Visit& visit) {
  if (row.data->scalar == ScalarType::kFloat32)
    visit(point_of<float>(row));
  else
    visit(point_of<double>(row));
}

/// A place amid the rows: of each column the median of nine rows.
std::vector<double> place_amid(const std::vector<SampledRow>& rows, std::uint32_t dims) {
  constexpr std::size_t kRows = 9;
  std::vector<double> place(dims);
  std::array<double, kRows> values;
  for (std::uint32_t d = 0; d < dims; ++d) {
    for (std::size_t i = 0; i < kRows; ++i) {
      const SampledRow row = rows[(2 * i + 1) * rows.size() / (2 * kRows)];
      values[i] = coordinate(*row.data, row.row, d);
    }
    std::nth_element(values.begin(), values.begin() + kRows / 2, values.end());
    place[d] = values[kRows / 2];
  }
  return place;
}

/// Half of what a row lies away in the column in which it lies furthest; a whole may overflow.
double half_away(SampledRow row, const std::vector<double>& place) {
  double most = 0;
  with_point(row, [&](const auto* point) {
    for (std::size_t d = 0; d < place.size(); ++d)
      most = std::max(most, std::fabs(static_cast<double>(point[d]) / 2 - place[d] / 2));
  });
  return most;
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

std::vector<SampledRow> ordinary_rows(const std::vector<SampledRow>& rows, std::uint32_t dims,
                                      std::size_t one_in) {
  std::vector<SampledRow> finite;
  for (const SampledRow row : rows)
    if (is_finite_row(*row.data, row.row)) finite.push_back(row);
  const std::size_t out = most_outliers(finite.size(), one_in);
  if (out == 0) return finite;

  const std::vector<double> place = place_amid(finite, dims);
  std::vector<double> away;
  for (const SampledRow row : finite) away.push_back(half_away(row, place));
  std::vector<double> sorted = away;
  const auto ordinary = sorted.end() - 1 - static_cast<std::ptrdiff_t>(out);
  std::nth_element(sorted.begin(), ordinary, sorted.end());
  if (*ordinary == 0) return finite;  // nearly all rows are the same
  std::vector<SampledRow> kept;
  for (std::size_t i = 0; i < finite.size(); ++i)
    if (away[i] <= kBeyondRows * *ordinary) kept.push_back(finite[i]);
  return kept;
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
  for (const SampledRow row : rows) {
    with_point(row, [&](const auto* point) {
      for (std::uint32_t d = 0; d < dims; ++d) {
        const auto x = static_cast<double>(point[d]);
        const double difference = x - origin[d];
        sum[d] += difference;
        squares[d] += difference * difference;
        columns.low[d] = std::min(columns.low[d], x);
        columns.high[d] = std::max(columns.high[d], x);
      }
    });
  }
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

std::vector<std::uint32_t> by_variance(const ColumnStatistics& columns) {
  std::vector<std::uint32_t> order(columns.variance.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return columns.variance[a] > columns.variance[b];
  });
  return order;
}

}  // namespace gpujoin
