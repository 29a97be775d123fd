// The sampled values of columns that an index may rest on, and how well they separate points.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/request/request.h"
#include "engine/strategy/outliers.h"
#include "engine/strategy/reference_points.h"
#include "engine/strategy/sample.h"

namespace gpujoin {

/// One column over the sample's rows.
struct SampledColumn {
  std::uint32_t column;
  double reach;  ///< points that match differ by no more
  std::vector<double> left;
  std::vector<double> right;

  double difference(SamplePair pair) const {
    return std::fabs(left[pair.left] - right[pair.right]);
  }
  /// Where the values that are no outliers lie, or a little beyond; {0, 0} where there are none.
  Extent range() const;
  /// Where the sampled values in that range lie.
  Extent sampled_range() const;
};

/// The columns of the data that may be indexed: all of few columns; with `reorder` the ones of many
/// that vary most.
std::vector<SampledColumn> sampled_columns(const JoinRequest& request, const Sample& sample,
                                           double reach, bool reorder);

/// The keys, as columns after the columns of the data.
std::vector<SampledColumn> sampled_keys(const JoinRequest& request, const Sample& sample);

/// The distances to each reference point, as columns after the columns of the data and the keys.
std::vector<SampledColumn> sampled_distances(const JoinRequest& request, const Sample& sample,
                                             const ReferencePoints& references, double reach);

/// The pairs of a sample that no column has separated. Copies none before a column drops some.
class PairsLeft {
 public:
  explicit PairsLeft(const std::vector<SamplePair>& all) : all_(all) {}  ///< outlives this

  /// Drops the pairs that lie further apart than so many times its reach in the column.
  void keep_within(const SampledColumn& column, double reaches);
  const std::vector<SamplePair>& pairs() const { return chosen_ ? left_ : all_; }
  double count() const { return static_cast<double>(pairs().size()); }

 private:
  const std::vector<SamplePair>& all_;
  std::vector<SamplePair> left_;
  bool chosen_ = false;
};

/// Takes the column that leaves the fewest pairs within so many times its reach; without `reorder`,
/// the first one.
SampledColumn take_most_selective(std::vector<SampledColumn>& columns,
                                  const std::vector<SamplePair>& pairs, double reaches,
                                  bool reorder);

/// Around each sampled value, the width of an interval that holds one of `slices` equal shares of
/// all.
std::vector<double> slice_widths(const std::vector<double>& values, double slices);

}  // namespace gpujoin
