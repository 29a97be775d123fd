// Which values and rows of a sample are outliers, and statistics of the others. An index is laid
// over the ordinary values, and points are scaled by the ordinary rows, so that a few rows far away
// cost nothing but themselves. Speed alone depends on what is found here: indexes and screens take
// in whatever lies outside, by the proofs in core/grid.h, core/sort_code.h and core/tile_screen.h.
//
// One sampled value in 128 at either end may be an outlier: a cluster of a few percent is data,
// however far away it lies, and one row in 1,000 is not.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/grid.h"
#include "engine/request/request.h"

namespace gpujoin {

inline constexpr std::size_t kFewOutliers = 128;  ///< one value in so many, at either end
/// One row in so many, where taking ordinary rows for outliers costs next to nothing.
inline constexpr std::size_t kManyOutliers = 16;
inline constexpr Extent kEverywhere{-HUGE_VAL, HUGE_VAL};

/// Where the values of a column that are no outliers lie, from the sampled values of one or two
/// sides: within 4 times the range of the ordinary sampled ones, on either side of it. Values that
/// are not finite do not count. kEverywhere where there are too few to judge.
Extent ordinary_range(const std::vector<double>& left, const std::vector<double>* right);

struct SampledRow {
  const Dataset* data;
  std::uint64_t row;
};

/// Some of a sample's rows, evenly spread: the fewer, the more dimensions a row has.
std::vector<SampledRow> spread_rows(const Dataset& data, const std::vector<std::uint64_t>& rows);

/// The same of both sides, of a self-join of one.
std::vector<SampledRow> spread_rows(const Sides& sides, const std::vector<std::uint64_t>& left,
                                    const std::vector<std::uint64_t>& right);

/// The finite rows among `rows`, of one or two datasets of `dims` columns, without outliers. In
/// some column an outlier lies 16 times as far away as all but one row in `one_in` lie in any.
/// Takes O(rows * dims). Throws std::bad_alloc.
std::vector<SampledRow> ordinary_rows(std::vector<SampledRow> rows, std::uint32_t dims,
                                      std::size_t one_in = kFewOutliers);

/// What is known of each column, over some finite rows; zeros where there is no row.
struct ColumnStatistics {
  std::vector<double> low, high, mean;
  std::vector<double> variance;  ///< times the number of rows; DBL_MAX where that overflows
};

/// Sums are relative to the first row, so nothing cancels where values are far from 0. Throws
/// std::bad_alloc.
ColumnStatistics column_statistics(const std::vector<SampledRow>& rows, std::uint32_t dims);

/// The ordinary_rows() of a sample of one or two sides, and what is known of their columns.
struct OrdinarySample {
  std::vector<SampledRow> rows;
  ColumnStatistics columns;
};

/// Throws std::bad_alloc.
OrdinarySample ordinary_sample(const Sides& sides, const std::vector<std::uint64_t>& left,
                               const std::vector<std::uint64_t>& right);

/// The columns in descending order of their variance (REORDER [GPU-Join, section 4.2]).
std::vector<std::uint32_t> by_variance(const ColumnStatistics& columns);

}  // namespace gpujoin
