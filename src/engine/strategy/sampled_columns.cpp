#include "engine/strategy/sampled_columns.h"

#include <algorithm>
#include <cmath>

namespace gpujoin {
namespace {

// Where there are many columns, only the ones that vary most are considered for an index.
constexpr std::size_t kMaxConsideredColumns = 16;

std::vector<double> sampled_values(const Dataset& data, const std::vector<std::uint64_t>& rows,
                                   std::uint32_t column) {
  std::vector<double> values(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) values[i] = coordinate(data, rows[i], column);
  return values;
}

/// Counts up to `enough`, or somewhat beyond.
std::size_t count_within(const SampledColumn& column, const std::vector<SamplePair>& pairs,
                         double distance, std::size_t enough) {
  constexpr std::size_t kBetweenLooks = 1024;
  const double *const left = column.left.data(), *const right = column.right.data();
  std::size_t count = 0;
  for (std::size_t i = 0; i < pairs.size() && count < enough;) {
    const std::size_t end = std::min(pairs.size(), i + kBetweenLooks);
    for (; i < end; ++i)
      count += std::fabs(left[pairs[i].left] - right[pairs[i].right]) <= distance;
  }
  return count;
}

/// The extent of the finite values of both sides within a range; {0, 0} where there are none.
Extent extent_of(const std::vector<double>& left, const std::vector<double>& right,
                 Extent range = kEverywhere) {
  Extent extent = kNoExtent;
  for (const std::vector<double>* const values : {&left, &right}) {
    for (const double x : *values) {
      if (!std::isfinite(x) || !range.holds(x)) continue;
      include(extent, {x, x});
    }
  }
  return extent.low <= extent.high ? extent : Extent{0, 0};
}

}  // namespace

Extent SampledColumn::range() const {
  const Extent ordinary = ordinary_range(left, &right);
  if (std::isfinite(ordinary.low) && std::isfinite(ordinary.high)) return ordinary;
  const Extent all = extent_of(left, right);
  return {std::max(ordinary.low, all.low), std::min(ordinary.high, all.high)};
}

Extent SampledColumn::sampled_range() const { return extent_of(left, right, range()); }

std::vector<SampledColumn> sampled_columns(const JoinRequest& request, const Sample& sample,
                                           double reach, bool reorder) {
  const std::uint32_t dims = request.left().dims;
  const Dataset& right = request.right();
  std::vector<std::uint32_t> considered(dims);
  for (std::uint32_t d = 0; d < dims; ++d) considered[d] = d;
  if (reorder && dims > kMaxConsideredColumns) {
    const auto rows = ordinary_rows(spread_rows(request.left(), sample.left), dims);
    considered = by_variance(column_statistics(rows, dims));
  }
  considered.resize(std::min<std::size_t>(dims, kMaxConsideredColumns));
  std::vector<SampledColumn> columns;
  for (const std::uint32_t d : considered) {
    SampledColumn column{d, reach, sampled_values(request.left(), sample.left, d), {}};
    column.right = request.self_join() ? column.left : sampled_values(right, sample.right, d);
    columns.push_back(std::move(column));
  }
  return columns;
}

std::vector<SampledColumn> sampled_keys(const JoinRequest& request, const Sample& sample) {
  const auto keys = [](const Dataset& data, const std::vector<std::uint64_t>& rows,
                       std::uint32_t number) {
    std::vector<double> values(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) values[i] = key_of(data, rows[i], number);
    return values;
  };
  std::vector<SampledColumn> columns;
  for (std::uint32_t k = 0; k < request.keys.count; ++k)
    if (!request.keys.is_high_end(k))
      columns.push_back({request.left().dims + k, request.keys.reach[k],
                         keys(request.left(), sample.left, k),
                         keys(request.right(), sample.right, k)});
  return columns;
}

std::vector<SampledColumn> sampled_distances(const JoinRequest& request, const Sample& sample,
                                             const ReferencePoints& references, double reach) {
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
    SampledColumn column{request.left().dims + request.keys.count + number,
                         reach,
                         distances(request.left(), sample.left, number),
                         {}};
    column.right =
        request.self_join() ? column.left : distances(request.right(), sample.right, number);
    columns.push_back(std::move(column));
  }
  return columns;
}

void PairsLeft::keep_within(const SampledColumn& column, double reaches) {
  const double distance = reaches * column.reach;
  constexpr std::size_t kAtOnce = 1024;
  SamplePair kept[kAtOnce];
  const double *const left = column.left.data(), *const right = column.right.data();
  const SamplePair* const from = pairs().data();
  const std::size_t count = pairs().size();
  std::size_t stay = 0;
  for (std::size_t i = 0; i < count;) {
    const std::size_t end = std::min(count, i + kAtOnce);
    std::size_t here = 0;
    for (; i < end; ++i) {  // without a branch: nobody could foretell it
      const SamplePair pair = from[i];
      kept[here] = pair;
      here += std::fabs(left[pair.left] - right[pair.right]) <= distance;
    }
    if (!chosen_) left_.resize(stay + here);
    std::copy_n(kept, here, left_.begin() + static_cast<std::ptrdiff_t>(stay));
    stay += here;
  }
  left_.resize(stay);
  chosen_ = true;
}

SampledColumn take_most_selective(std::vector<SampledColumn>& columns,
                                  const std::vector<SamplePair>& pairs, double reaches,
                                  bool reorder) {
  auto best = columns.begin();
  if (reorder && columns.size() > 1) {
    std::size_t fewest = ~std::size_t{0};
    for (auto column = columns.begin(); column != columns.end(); ++column) {
      const std::size_t left = count_within(*column, pairs, reaches * column->reach, fewest);
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

}  // namespace gpujoin
