#include "engine/strategy/sampled_columns.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

namespace gpujoin {
namespace {

/// The lowest bits of eight bytes, the first one's lowest.
std::uint64_t packed(const std::uint8_t* bytes) {
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word * 0x0102040810204080ULL >> 56;
}

/// A word of so many bits, of which there is one at least; of all where these are more.
std::uint64_t first_bits(std::size_t count) {
  return ~std::uint64_t{0} >> (kMaskBits - std::min(kMaskBits, count));
}

std::vector<double> sampled_values(const Dataset& data, const std::vector<std::uint64_t>& rows,
                                   std::uint32_t column) {
  std::vector<double> values(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) values[i] = coordinate(data, rows[i], column);
  return values;
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

OrderedValues::OrderedValues(const std::vector<double>& values) : ranks(values.size()) {
  std::vector<std::pair<double, std::uint16_t>> order;
  order.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i])) order.emplace_back(values[i], static_cast<std::uint16_t>(i));
  std::sort(order.begin(), order.end());
  std::fill(ranks.begin(), ranks.end(), static_cast<std::uint16_t>(order.size()));
  sorted.reserve(order.size());
  positions.reserve(order.size());
  std::uint16_t rank = 0;
  for (const auto& [x, position] : order) {
    if (sorted.empty() || sorted.back() < x) rank = static_cast<std::uint16_t>(sorted.size());
    ranks[position] = rank;
    sorted.push_back(x);
    positions.push_back(position);
  }
}

SampledColumn::SampledColumn(std::uint32_t number, double most, std::vector<double> lefts,
                             std::vector<double> rights)
    : column(number),
      reach(most),
      left(std::move(lefts)),
      right(std::move(rights)),
      left_order(left),
      right_order(right == left ? left_order : OrderedValues(right)) {}

Extent SampledColumn::range() const {
  const Extent ordinary = ordinary_range(left, &right);
  if (std::isfinite(ordinary.low) && std::isfinite(ordinary.high)) return ordinary;
  const Extent all = extent_of(left, right);
  return {std::max(ordinary.low, all.low), std::min(ordinary.high, all.high)};
}

Extent SampledColumn::sampled_range() const { return extent_of(left, right, range()); }

std::vector<SampledColumn> sampled_columns(const JoinRequest& request, const Sample& sample,
                                           double reach, const OrdinarySample* ordinary) {
  const std::uint32_t dims = request.left().dims;
  const Dataset& right = request.right();
  std::vector<std::uint32_t> considered(dims);
  std::iota(considered.begin(), considered.end(), 0u);
  if (ordinary != nullptr) considered = by_variance(ordinary->columns);
  considered.resize(std::min(dims, kMaxConsideredColumns));
  std::vector<SampledColumn> columns;
  for (const std::uint32_t d : considered) {
    std::vector<double> lefts = sampled_values(request.left(), sample.left, d);
    std::vector<double> rights =
        request.self_join() ? lefts : sampled_values(right, sample.right, d);
    columns.emplace_back(d, reach, std::move(lefts), std::move(rights));
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
      columns.emplace_back(request.left().dims + k, request.keys.reach[k],
                           keys(request.left(), sample.left, k),
                           keys(request.right(), sample.right, k));
  return columns;
}

std::vector<SampledColumn> sampled_distances(const JoinRequest& request, const Sample& sample,
                                             const ReferencePoints& references, double reach) {
  const auto distances = [&](const Dataset& data, const std::vector<std::uint64_t>& rows) {
    std::vector<std::vector<double>> columns(references.count,
                                             std::vector<double>(rows.size(), NAN));
    std::vector<double> distances_of_row(references.count);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!is_finite_row(data, rows[i])) continue;
      reference_distances(references, data, rows[i], rows[i] + 1, distances_of_row.data(), 1);
      for (std::uint32_t number = 0; number < references.count; ++number)
        columns[number][i] = distances_of_row[number];
    }
    return columns;
  };
  std::vector<std::vector<double>> lefts = distances(request.left(), sample.left);
  std::vector<std::vector<double>> rights =
      request.self_join() ? lefts : distances(request.right(), sample.right);
  std::vector<SampledColumn> columns;
  for (std::uint32_t number = 0; number < references.count; ++number)
    columns.emplace_back(request.left().dims + request.keys.count + number, reach,
                         std::move(lefts[number]), std::move(rights[number]));
  return columns;
}

/// Right points are ordered by their remainders by `step`; a left point meets those of one
/// remainder, which is its own, or its neighbours', no more often than another: rows near each
/// other in a table may be alike.
SampledPairs::SampledPairs(const Sample& sample, std::size_t most) {
  const std::size_t lefts = sample.left.size(), rights = sample.right.size();
  const std::size_t step = std::max<std::size_t>(1, (sample.pair_count() + most - 1) / most);
  std::vector<std::size_t> first_of(step + 1, 0);
  order_.reserve(rights);
  for (std::size_t remainder = 0; remainder < step; ++remainder) {
    for (std::size_t right = remainder; right < rights; right += step)
      order_.push_back(static_cast<std::uint16_t>(right));
    first_of[remainder + 1] = order_.size();
  }
  for (std::size_t left = 0; left < lefts; ++left) {
    const std::size_t remainder = left / step % step, end = first_of[remainder + 1];
    const bool skips = sample.self_join && left >= remainder;
    const std::size_t skipped = skips ? (left - remainder) / step + 1 : 0;
    runs_.push_back({std::min(first_of[remainder] + skipped, end), end});
    const std::size_t count = end - runs_.back().first;
    words_ += (count + kMaskBits - 1) / kMaskBits;
    count_ += count;
  }
}

template <class T>
std::vector<T> SampledPairs::ordered(const std::vector<T>& values) const {
  std::vector<T> there(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) there[i] = values[order_[i]];
  return there;
}

/// What is within reach of a left value are right values from one rank on, so many.
PairMask SampledPairs::within(const SampledColumn& column, double reaches) const {
  const double distance = reaches * column.reach;
  const OrderedValues& lefts = column.left_order;
  const std::vector<double>& rights = column.right_order.sorted;
  std::vector<std::uint16_t> first_ranks(runs_.size(), 0), rank_counts(runs_.size(), 0);
  std::size_t first = 0, end = 0;
  for (std::size_t i = 0; i < lefts.sorted.size(); ++i) {
    const double x = lefts.sorted[i];
    while (first < rights.size() && x - rights[first] > distance) ++first;
    while (end < rights.size() && rights[end] - x <= distance) ++end;
    if (first >= end) continue;
    first_ranks[lefts.positions[i]] = static_cast<std::uint16_t>(first);
    rank_counts[lefts.positions[i]] = static_cast<std::uint16_t>(end - first);
  }
  std::vector<std::uint16_t> ranks = ordered(column.right_order.ranks);
  ranks.resize(ranks.size() + kMaskBits);  // whole words are compared, beyond the last pair, too
  PairMask mask(words_);
  std::uint64_t* to = mask.data();
  for (std::size_t left = 0; left < runs_.size(); ++left) {
    const std::uint16_t least = first_ranks[left], many = rank_counts[left];
    for (std::size_t i = runs_[left].first; i < runs_[left].end; i += kMaskBits) {
      const std::uint16_t* const of_word = ranks.data() + i;
      std::uint8_t near[kMaskBits];
      for (std::size_t k = 0; k < kMaskBits; ++k)
        near[k] = static_cast<std::uint16_t>(of_word[k] - least) < many;
      std::uint64_t word = 0;
      for (std::size_t byte = 0; byte < kMaskBits / 8; ++byte)
        word |= packed(near + 8 * byte) << (8 * byte);
      *to++ = word & first_bits(runs_[left].end - i);
    }
  }
  return mask;
}

PairMask SampledPairs::all() const {
  PairMask mask;
  mask.reserve(words_);
  for (const Run& run : runs_)
    for (std::size_t i = run.first; i < run.end; i += kMaskBits)
      mask.push_back(first_bits(run.end - i));
  return mask;
}

std::size_t SampledPairs::count_meeting(const std::vector<const SampledColumn*>& columns,
                                        const std::vector<std::vector<double>>& left_widths,
                                        const std::vector<std::vector<double>>& right_widths,
                                        double reach) const {
  std::vector<std::vector<double>> values, widths;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    values.push_back(ordered(columns[c]->right));
    widths.push_back(ordered(right_widths[c]));
  }
  const double most = reach * reach;
  std::size_t meeting = 0;
  std::vector<double> squares(order_.size());
  for (std::size_t left = 0; left < runs_.size(); ++left) {
    const std::size_t first = runs_[left].first, count = runs_[left].end - first;
    double* const sums = squares.data();
    std::fill_n(sums, count, 0.0);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const double x = columns[c]->left[left], width = left_widths[c][left];
      const double *const value = values[c].data() + first, *const other = widths[c].data() + first;
      for (std::size_t i = 0; i < count; ++i) {
        // On average a point lies in the middle of its interval.
        const double gap = std::fabs(x - value[i]) - (width + other[i]) / 2;
        const double beyond = (gap + std::fabs(gap)) / 2;
        sums[i] += beyond * beyond;
      }
    }
    for (std::size_t i = 0; i < count; ++i) meeting += sums[i] <= most;
  }
  return meeting;
}

void PairsLeft::keep(const PairMask& mask) {
  for (std::size_t i = 0; i < left_.size(); ++i) left_[i] &= mask[i];
  count_ = count_with(mask);
}

/// Counts the bits of every byte, and adds bytes up before they overflow: several words at a time,
/// on machines that have no instruction for it, too [Warren, section 5-1].
std::size_t PairsLeft::count_with(const PairMask& mask) const {
  constexpr std::uint64_t kOnes = ~std::uint64_t{0};
  constexpr std::size_t kAtOnce = 255 / 8;
  std::size_t count = 0;
  for (std::size_t first = 0; first < left_.size(); first += kAtOnce) {
    const std::size_t end = std::min(left_.size(), first + kAtOnce);
    std::uint64_t of_bytes = 0;
    for (std::size_t i = first; i < end; ++i) {
      std::uint64_t x = left_[i] & mask[i];
      x -= x >> 1 & kOnes / 3;
      x = (x & kOnes / 5) + (x >> 2 & kOnes / 5);
      of_bytes += (x + (x >> 4)) & kOnes / 17;
    }
    for (; of_bytes > 0; of_bytes >>= 8) count += of_bytes & 0xff;
  }
  return count;
}

ColumnChoice take_most_selective(std::vector<ColumnChoice>& choices, const PairsLeft& pairs,
                                 bool reorder) {
  auto best = choices.begin();
  if (reorder && choices.size() > 1) {
    std::size_t fewest = ~std::size_t{0};
    for (auto choice = choices.begin(); choice != choices.end(); ++choice) {
      const std::size_t left = pairs.count_with(*choice->mask);
      if (left < fewest) {
        fewest = left;
        best = choice;
      }
    }
  }
  const ColumnChoice taken = *best;
  choices.erase(best);
  return taken;
}

std::vector<double> slice_widths(const OrderedValues& values, double slices) {
  const std::vector<double>& sorted = values.sorted;
  const auto count = static_cast<std::ptrdiff_t>(sorted.size());
  const auto half = static_cast<std::ptrdiff_t>(static_cast<double>(count) / slices / 2 + 0.5);
  std::vector<double> widths(values.ranks.size());
  for (const std::uint16_t position : values.positions) {
    const std::ptrdiff_t rank = values.ranks[position];
    widths[position] =
        sorted[std::min(count - 1, rank + half)] - sorted[std::max<std::ptrdiff_t>(0, rank - half)];
  }
  return widths;
}

}  // namespace gpujoin
