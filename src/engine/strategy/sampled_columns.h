// The sampled values of columns that an index may rest on, and how well they separate points.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/request/request.h"
#include "engine/strategy/outliers.h"
#include "engine/strategy/reference_points.h"
#include "engine/strategy/sample.h"

namespace gpujoin {

/// Values of a sample, in order.
struct OrderedValues {
  explicit OrderedValues(const std::vector<double>& values);

  std::vector<double> sorted;            ///< the finite ones
  std::vector<std::uint16_t> positions;  ///< of these
  std::vector<std::uint16_t> ranks;      ///< of each value: how many of `sorted` are less; or all
};

/// One column over the sample's rows.
struct SampledColumn {
  SampledColumn(std::uint32_t number, double most, std::vector<double> lefts,
                std::vector<double> rights);

  std::uint32_t column;
  double reach;  ///< points that match differ by no more
  std::vector<double> left;
  std::vector<double> right;
  OrderedValues left_order, right_order;

  /// Where the values that are no outliers lie, or a little beyond; {0, 0} where there are none.
  Extent range() const;
  /// Where the sampled values in that range lie.
  Extent sampled_range() const;
};

/// Of more columns than these only some are considered for an index.
inline constexpr std::uint32_t kMaxConsideredColumns = 16;

/// The columns of the data that may be indexed: all of few columns; of many the first ones, or
/// those that vary most in the ordinary rows where they are given.
std::vector<SampledColumn> sampled_columns(const JoinRequest& request, const Sample& sample,
                                           double reach, const OrdinarySample* ordinary);

/// The keys, as columns after the columns of the data.
std::vector<SampledColumn> sampled_keys(const JoinRequest& request, const Sample& sample);

/// The distances to each reference point, as columns after the columns of the data and the keys.
std::vector<SampledColumn> sampled_distances(const JoinRequest& request, const Sample& sample,
                                             const ReferencePoints& references, double reach);

/// A bit for each pair of some, set where something holds of it. Those of a left point begin with a
/// word; bits of no pair are 0.
using PairMask = std::vector<std::uint64_t>;
inline constexpr std::size_t kMaskBits = 64;

/// Pairs of a sample, of which those of one left point lie together, so that several are looked at
/// at once.
class SampledPairs {
 public:
  /// Pairs of two different points: all, or about `most`, to which all points add alike.
  SampledPairs(const Sample& sample, std::size_t most);

  std::size_t count() const { return count_; }
  PairMask all() const;
  /// Those that lie no further apart than so many times the column's reach.
  PairMask within(const SampledColumn& column, double reaches) const;
  /// Calls visit(position in left, position in right) for the pairs of a mask.
  template <class Visit>
  void visit(const PairMask& mask, const Visit& visit) const;
  /// How many come within reach of each other in all columns together, where points are given as
  /// the intervals of some width that they are amid. Shape of widths: [columns][points].
  std::size_t count_meeting(const std::vector<const SampledColumn*>& columns,
                            const std::vector<std::vector<double>>& left_widths,
                            const std::vector<std::vector<double>>& right_widths,
                            double reach) const;

 private:
  /// The partners of a left point, in order_.
  struct Run {
    std::size_t first, end;
  };
  template <class T>
  std::vector<T> ordered(const std::vector<T>& values) const;

  std::vector<std::uint16_t> order_;  ///< right points
  std::vector<Run> runs_;             ///< by left point
  std::size_t words_ = 0;             ///< of a mask
  std::size_t count_ = 0;
};

template <class Visit>
void SampledPairs::visit(const PairMask& mask, const Visit& visit) const {
  const std::uint64_t* word = mask.data();
  for (std::size_t left = 0; left < runs_.size(); ++left)
    for (std::size_t i = runs_[left].first; i < runs_[left].end; i += kMaskBits)
      for (std::uint64_t bits = *word++; bits != 0; bits &= bits - 1)
        visit(left, order_[i + static_cast<std::size_t>(std::countr_zero(bits))]);
}

/// The pairs that no column has separated.
class PairsLeft {
 public:
  explicit PairsLeft(const SampledPairs& pairs) : left_(pairs.all()), count_(pairs.count()) {}

  void keep(const PairMask& mask);
  /// Those that the mask has, too.
  std::size_t count_with(const PairMask& mask) const;
  double count() const { return static_cast<double>(count_); }
  const PairMask& mask() const { return left_; }

 private:
  PairMask left_;
  std::size_t count_;
};

/// A column that may be taken for an index, and the pairs that it leaves.
struct ColumnChoice {
  const SampledColumn* column;
  const PairMask* mask;
};

/// Takes the column that leaves the fewest of the pairs; without `reorder`, the first one.
ColumnChoice take_most_selective(std::vector<ColumnChoice>& choices, const PairsLeft& pairs,
                                 bool reorder);

/// Around each value of a sample, the width of an interval that holds one of `slices` equal shares
/// of all.
std::vector<double> slice_widths(const OrderedValues& values, double slices);

}  // namespace gpujoin
