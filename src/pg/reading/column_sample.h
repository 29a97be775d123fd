// Some values of a column, for estimates: how many of their pairs are near each other. Statistics
// keep values as the bounds of a histogram, which are about a hundred of them, and as most common
// ones, which weigh what they are worth; the others lie in some of a table's blocks.
#pragma once

#include "core/box.h"
#include "pg/compat.h"
#include "pg/store/point_buffer.h"

extern "C" {
#include "access/htup.h"
}

namespace gpujoin {

/// Neighbours of a row, where nothing is known.
inline constexpr double kDefaultNeighbors = 10;

struct ColumnSample {
  int count;           ///< 0: there is none
  std::uint32_t dims;  ///< numbers that a value is: of a box two for each dimension
  double* values;      ///< [count][dims]; NaN where a value is no such point
  double* weights;     ///< [count], the share of rows that each stands for
  int* places;         ///< [count], see matching_share()
  int bounds;          ///< the last values are the bounds of a histogram of numbers; 0: none are
  double equal_share;  ///< share of the histogram's rows that have the value of one; 0: unknown
};

/// A share of pairs of rows.
struct PairShare {
  double share;  ///< negative: unknown
  bool is_seen;  ///< pairs were counted; else `share` is a guess
};

/// The share of pairs that meet two conditions, taken for independent.
inline PairShare both(PairShare a, PairShare b) {
  return {a.share * b.share, a.is_seen && b.is_seen};
}

/// The sample in a row of pg_statistic of a column of numbers, or of points that statistics keep;
/// none of a column of another type.
ColumnSample load_sample(Oid type, HeapTuple statistics);

/// Points or boxes that were read as a sample; their numbers are their places.
ColumnSample make_sample(const Dataset& points);

/// What makes two values a pair.
struct NearTest {
  bool boxes;
  BoxTest test;  ///< of points, the metric and the threshold
};

/// Returns the share of pairs that are near each other. With `same_rows` values of one place, other
/// than a negative one, are not compared: they may be of one row. If no pair is near, returns a
/// guess: half a pair, but at most `unseen`. Histograms of numbers are compared by the rows between
/// their bounds. The work is bounded, whatever the dimensions.
PairShare matching_share(const ColumnSample& a, const ColumnSample& b, const NearTest& test,
                         bool same_rows, double unseen);

/// The share of pairs of places within a straight line of each other, by samples of longitudes and
/// of latitudes. These are taken for independent.
PairShare matching_places(const ColumnSample* left, const ColumnSample* right, double chord,
                          bool same_rows);

/// The places of a sample of longitudes and latitudes that are one value.
ColumnSample places_of(const ColumnSample& degrees);

}  // namespace gpujoin
