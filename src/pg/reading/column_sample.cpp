#include "pg/reading/column_sample.h"

#include <bit>
#include <numeric>

#include "core/hamming.h"
#include "pg/geometry/great_circle.h"
#include "pg/reading/relation.h"
#include "pg/types/number_datum.h"

extern "C" {
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

namespace gpujoin {
namespace {

/// Numbers that an estimate compares, some tenths of a millisecond's worth.
constexpr std::uint64_t kMostWork = 1 << 17;
/// What a pair costs beside them, in numbers.
constexpr std::uint64_t kPairWork = 4;

ColumnSample new_sample(int count, std::uint32_t dims) {
  return {count,
          dims,
          static_cast<double*>(palloc(sizeof(double) * (count * dims + 1))),
          static_cast<double*>(palloc(sizeof(double) * (count + 1))),
          static_cast<int*>(palloc(sizeof(int) * (count + 1))),
          0,
          0};
}

/// Sets the values that are points, which settle the number of dimensions; the others are NaN.
template <class ValueAt>
ColumnSample sample_points(const ValueType& type, int count, const ValueAt& value_at) {
  PointBuffer points = {};
  points.context = CurrentMemoryContext;
  points.source = "statistics";
  points.limit = MaxAllocHugeSize;
  points.scalar = ScalarType::kFloat64;
  ValueShape shape = {};
  shape.as_stored = true;
  for (int i = 0; i < count; ++i)
    add_value(type, ValueForm::kPoint, &points, &shape, i, value_at(i));
  const ColumnSample sample = new_sample(points.rows == 0 ? 0 : count, points.dims);
  std::fill_n(sample.values, std::size_t{points.dims} * sample.count, NAN);
  const Dataset found = finish_points(&points);
  for (std::uint64_t row = 0; row < found.rows; ++row)
    std::copy_n(point<double>(found, row), found.dims, sample.values + found.ids[row] * found.dims);
  return sample;
}

/// The same of numbers.
template <class ValueAt>
ColumnSample sample_numbers(Oid type, int count, const ValueAt& value_at) {
  const ColumnSample sample = new_sample(count, 1);
  for (int i = 0; i < count; ++i) sample.values[i] = number_of(type, value_at(i));
  return sample;
}

/// The distance of two values of so many words of bits, which a sample keeps as numbers.
double distance_of_bits(Metric metric, const double* a, const double* b, std::uint32_t words) {
  std::uint32_t common = 0, differing = 0;
  for (std::uint32_t w = 0; w < words; ++w) {
    const auto one = std::bit_cast<std::uint64_t>(a[w]), other = std::bit_cast<std::uint64_t>(b[w]);
    common += count_bits(one & other);
    differing += count_bits(one ^ other);
  }
  return metric == Metric::kJaccard ? jaccard_distance(common, differing + 2 * common) : differing;
}

/// Whether two values are near. A raw distance only grows with every coordinate, so that of most
/// pairs few are read.
bool are_near(const NearTest& near, const double* a, const double* b, std::uint32_t dims,
              std::uint64_t* work) {
  const BoxTest& test = near.test;
  *work += kPairWork;
  if (is_of_bits(test.metric)) {
    *work += dims;
    return distance_of_bits(test.metric, a, b, dims) <= test.threshold;
  }
  if (near.boxes || test.metric == Metric::kCosine) {
    *work += dims;
    if (!near.boxes) return raw_distance(test.metric, a, b, dims) <= test.threshold;
    return is_box(a, dims / 2) && is_box(b, dims / 2) && passes(test, a, b, dims / 2);
  }
  constexpr std::uint32_t kStep = 16;
  double raw = 0;
  for (std::uint32_t d = 0; d < dims; d += kStep) {
    const std::uint32_t step = std::min(kStep, dims - d);
    *work += step;
    const double part = raw_distance(test.metric, a + d, b + d, step);
    raw = test.metric == Metric::kLInf ? part : raw + part;
    if (!(raw <= test.threshold)) return false;
  }
  return true;
}

/// A step that visits all of 0 .. count - 1, neighbours late after one another.
int stride_of(int count) {
  int stride = static_cast<int>(0.618 * count);
  while (stride > 1 && std::gcd(stride, count) != 1) --stride;
  return std::max(stride, 1);
}

/// Whether the numbers ascend, none of them NaN.
bool ascend(const double* numbers, int count) {
  return std::is_sorted(numbers, numbers + count, [](double a, double b) { return !(a >= b); });
}

/// The share of a histogram's rows between `low` and `high`, spread evenly within each bucket.
double share_between(const double* bounds, int count, double low, double high) {
  const auto share_until = [&](double end, const double* bound) {  // the first bound after `end`
    if (bound == bounds) return 0.0;
    if (bound == bounds + count) return 1.0;
    const double part = (end - bound[-1]) / (bound[0] - bound[-1]);
    return (static_cast<double>(bound - bounds) - 1 + (part > 0 ? part : 0)) / (count - 1);
  };
  return share_until(high, std::upper_bound(bounds, bounds + count, high)) -
         share_until(low, std::lower_bound(bounds, bounds + count, low));
}

/// The weight of a sample's rows within `reach` of a number.
double weight_near(const ColumnSample& sample, double number, double reach) {
  const int commons = sample.count - sample.bounds;
  double weight = 0, rest = 0;
  for (int i = 0; i < commons; ++i)
    if (fabs(sample.values[i] - number) <= reach) weight += sample.weights[i];
  if (sample.bounds == 0) return weight;
  for (int i = commons; i < sample.count; ++i) rest += sample.weights[i];
  const double* const bounds = sample.values + commons;
  const double low = number - reach, high = number + reach;
  if (!(high >= bounds[0] && low <= bounds[sample.bounds - 1])) return weight;
  return weight +
         rest * fmin(1, share_between(bounds, sample.bounds, low, high) + sample.equal_share);
}

/// matching_share() of samples of numbers. The bounds of one histogram are a bucket apart, so that
/// comparing bounds would find no pairs nearer than that.
PairShare matching_numbers(const ColumnSample& a, const ColumnSample& b, double reach,
                           double unseen) {
  double near = 0, all = 0, of_right = 0;
  for (int i = 0; i < b.count; ++i) of_right += b.weights[i];
  for (int i = 0; i < a.count; ++i) {
    near += a.weights[i] * weight_near(b, a.values[i], reach);
    all += a.weights[i] * of_right;
  }
  if (!(all > 0)) return {unseen, false};
  if (near > 0) return {fmin(near / all, 1), true};
  return {fmin(0.5 / (static_cast<double>(a.count) * b.count), unseen), false};
}

}  // namespace

ColumnSample load_sample(Oid type, HeapTuple statistics) {
  constexpr int kMost = 128;  // of either kind
  const bool number = is_number_type(type);
  const ValueType* const known = number ? nullptr : find_value_type(type);
  if (!number && (known == nullptr || !known->is_in_statistics)) return {};
  AttStatsSlot common = {}, histogram = {};
  get_attstatsslot(&common, statistics, STATISTIC_KIND_MCV, InvalidOid,
                   ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS);
  get_attstatsslot(&histogram, statistics, STATISTIC_KIND_HISTOGRAM, InvalidOid,
                   ATTSTATSSLOT_VALUES);
  const int commons = std::min(common.nvalues, kMost), bounds = std::min(histogram.nvalues, kMost);
  const auto bound = [&](int i) {  // the first and the last among them
    return histogram
        .values[static_cast<std::int64_t>(i) * (histogram.nvalues - 1) / std::max(bounds - 1, 1)];
  };
  const auto value_at = [&](int i) { return i < commons ? common.values[i] : bound(i - commons); };
  ColumnSample sample = number ? sample_numbers(type, commons + bounds, value_at)
                               : sample_points(*known, commons + bounds, value_at);
  const auto* const row = reinterpret_cast<Form_pg_statistic>(GETSTRUCT(statistics));
  double rest = 1 - row->stanullfrac;
  for (int i = 0; i < common.nvalues; ++i) rest -= common.numbers[i];
  for (int i = 0; i < sample.count; ++i) {
    const bool is_common = i < commons;
    sample.weights[i] = is_common ? common.numbers[i] : fmax(rest, 0) / bounds;
    sample.places[i] = is_common ? -1 : i;  // two rows of the same common value are a pair as well
  }
  if (sample.dims == 1 && sample.count > 0 && bounds > 1 &&
      ascend(sample.values + commons, bounds)) {
    sample.bounds = bounds;
    const double others = row->stadistinct - common.nvalues;
    sample.equal_share = row->stadistinct > 0 ? 1 / fmax(others, 1) : 0;
  }
  free_attstatsslot(&common);
  free_attstatsslot(&histogram);
  return sample;
}

ColumnSample make_sample(const Dataset& points) {
  ColumnSample sample = new_sample(static_cast<int>(points.rows), points.dims);
  double* value = sample.values;
  for (std::uint64_t row = 0; row < points.rows; ++row)
    for (std::uint32_t d = 0; d < points.dims; ++d)
      *value++ = points.scalar == ScalarType::kBits
                     ? std::bit_cast<double>(point<std::uint64_t>(points, row)[d])
                     : coordinate(points, row, d);
  std::fill_n(sample.weights, sample.count, 1.0);
  std::copy_n(points.ids, sample.count, sample.places);
  return sample;
}

PairShare matching_share(const ColumnSample& a, const ColumnSample& b, const NearTest& test,
                         bool same_rows, double unseen) {
  if (a.dims == 1 && b.dims == 1 && a.bounds + b.bounds > 0 && test.test.metric != Metric::kCosine)
    return matching_numbers(a, b, test.test.reach, unseen);
  const int stride = stride_of(b.count);
  std::uint64_t work = 0, pairs = 0;
  double near = 0, all = 0;
  // Diagonals far apart, so that whenever the work is up each value has been compared with many.
  for (int k = 1; k <= b.count && work < kMostWork; ++k) {
    CHECK_FOR_INTERRUPTS();
    const int shift = static_cast<int>(std::int64_t{k} * stride % b.count);
    for (int i = 0; i < a.count; ++i) {
      const int j = (i + shift) % b.count;
      if (same_rows && a.places[i] >= 0 && a.places[i] == b.places[j]) continue;
      const double weight = a.weights[i] * b.weights[j];
      all += weight;
      ++pairs;
      if (a.dims == b.dims && are_near(test, a.values + std::size_t{a.dims} * i,
                                       b.values + std::size_t{b.dims} * j, a.dims, &work))
        near += weight;
    }
  }
  if (!(all > 0)) return {unseen, false};
  if (near > 0) return {near / all, true};
  return {fmin(0.5 / static_cast<double>(pairs), unseen), false};
}

namespace {

/// How much shorter a degree of longitude is than one of latitude, on average.
double shortening(const ColumnSample& latitudes) {
  double sum = 0, all = 0;
  for (int i = 0; i < latitudes.count; ++i) {
    if (!std::isfinite(latitudes.values[i])) continue;
    sum += latitudes.weights[i] * turn_of(fmin(fabs(latitudes.values[i]), 90)).cosine;
    all += latitudes.weights[i];
  }
  return all > 0 ? fmax(sum / all, 0.01) : 1;
}

}  // namespace

PairShare matching_places(const ColumnSample* left, const ColumnSample* right, double chord,
                          bool same_rows) {
  const double degrees = arc_of_chord(chord) / kEarthRadius * (180 / M_PI);
  const double reaches[2] = {degrees / shortening(left[1]), degrees};
  PairShare share = {1, true};
  for (int i = 0; i < 2; ++i)
    share =
        both(share, matching_share(left[i], right[i],
                                   {false, make_box_test(Metric::kL2, reaches[i])}, same_rows, 1));
  return share;
}

ColumnSample places_of(const ColumnSample& degrees) {
  if (degrees.count == 0 || degrees.dims != 2) return {};
  ColumnSample places = new_sample(degrees.count, 3);
  for (int i = 0; i < degrees.count; ++i) {
    const double longitude = degrees.values[2 * i], latitude = degrees.values[2 * i + 1];
    double* const place = places.values + 3 * i;
    if (are_degrees(longitude, latitude))
      set_place(longitude, latitude, place);
    else
      std::fill_n(place, 3, NAN);
  }
  std::copy_n(degrees.weights, degrees.count, places.weights);
  std::copy_n(degrees.places, degrees.count, places.places);
  return places;
}

}  // namespace gpujoin
