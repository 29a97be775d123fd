#include "engine/strategy/reference_points.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/strategy/sample.h"

namespace gpujoin {
namespace {

// More reference points cost more searches than they save distances [COSS, section 6.4].
constexpr std::uint32_t kDefaultReferencePoints = 6;

// Few columns separate points better than distances made of them.
constexpr std::uint32_t kFewDimensions = 4;

/// How far beyond the largest distance of an ordinary sampled row reference distances still differ.
constexpr double kBeyondSample = 4;

/// What is known of each column, over some rows and scaled.
struct ScaledSpread {
  double scale = 1;
  std::vector<double> low, mean, high;
};

ScaledSpread scaled_spread(const ColumnStatistics& columns) {
  ScaledSpread spread{1, columns.low, columns.mean, columns.high};
  double largest = 0;
  for (std::size_t d = 0; d < columns.low.size(); ++d)
    largest = std::max({largest, std::fabs(columns.low[d]), std::fabs(columns.high[d])});
  spread.scale = screen_scale(largest);
  for (std::vector<double>* const values : {&spread.low, &spread.mean, &spread.high})
    for (double& x : *values) x *= spread.scale;
  return spread;
}

/// The columns of share `number` of `shares`; where there are more shares than columns, one column
/// each.
bool in_share(std::uint32_t column, std::uint32_t dims, std::uint32_t number,
              std::uint32_t shares) {
  if (shares > dims) return column == number % dims;
  return std::uint64_t{column} * shares / dims == number;
}

/// RP-OUTER [COSS, section 4.4]. With two points a share of all columns would make the second point
/// the first one again.
void place_outer(const ScaledSpread& spread, std::uint32_t number, std::uint32_t count,
                 std::uint32_t dims, double* point) {
  const std::uint32_t shares = std::max(count - 1, 2u);
  for (std::uint32_t d = 0; d < dims; ++d) {
    bool high = number == 0 || in_share(d, dims, number - 1, shares);
    // More points than columns: the next ones lie across.
    if (number > 0 && (number - 1) / dims % 2 == 1) high = !high;
    point[d] = high ? spread.high[d] : spread.low[d];
  }
}

/// RP-INNER [COSS, section 4.4].
void place_inner(const ScaledSpread& spread, std::uint32_t number, std::uint32_t count,
                 std::uint32_t dims, double* point) {
  const std::uint32_t rings = count / 2;
  const std::uint32_t ring = number == 0 ? 0 : (number - 1) / 2;
  const bool above = number % 2 == 1;
  for (std::uint32_t d = 0; d < dims; ++d) {
    const double edge = above ? spread.high[d] : spread.low[d];
    point[d] = spread.mean[d];
    if (number > 0 && in_share(d, dims, ring, rings))
      point[d] += (edge - spread.mean[d]) * (ring + 1) / rings;
  }
}

/// The distances of a point to `kCount` reference points from number `first` on: sums that do not
/// wait for each other.
template <std::uint32_t kCount, Metric M, class T>
void add_distances(const ReferencePoints& references, std::uint32_t first, const T* point,
                   double* distances, std::uint64_t stride) {
  const double* const to = references.point(first);
  const std::uint32_t dims = references.dims;
  double raw[kCount] = {};
  for (std::uint32_t d = 0; d < dims; ++d) {
    const double x = multiply_rounded(static_cast<double>(point[d]), references.frame.scale);
    for (std::uint32_t i = 0; i < kCount; ++i)
      raw[i] = add_coordinate<M>(raw[i], x, to[std::size_t{i} * dims + d]);
  }
  for (std::uint32_t i = 0; i < kCount; ++i)
    distances[(first + i) * stride] = reference_distance<M>(raw[i], references.frame);
}

template <Metric M, class T>
void distances_of(const ReferencePoints& references, const Dataset& data, std::uint64_t first,
                  std::uint64_t end, double* distances, std::uint64_t stride) {
  constexpr std::uint32_t kMany = 6, kSome = 3;
  for (std::uint64_t row = first; row < end; ++row, ++distances) {
    const T* const at = point<T>(data, row);
    std::uint32_t number = 0;
    for (; number + kMany <= references.count; number += kMany)
      add_distances<kMany, M>(references, number, at, distances, stride);
    for (; number + kSome <= references.count; number += kSome)
      add_distances<kSome, M>(references, number, at, distances, stride);
    for (; number < references.count; ++number)
      add_distances<1, M>(references, number, at, distances, stride);
  }
}

template <Metric M>
void distances_of(const ReferencePoints& references, const Dataset& data, std::uint64_t first,
                  std::uint64_t end, double* distances, std::uint64_t stride) {
  if (data.scalar == ScalarType::kFloat32)
    distances_of<M, float>(references, data, first, end, distances, stride);
  else
    distances_of<M, double>(references, data, first, end, distances, stride);
}

}  // namespace

ReferencePoints place_reference_points(Metric metric, const OrdinarySample& sample,
                                       std::uint32_t count, ReferencePlacement placement) {
  const ScaledSpread spread = scaled_spread(sample.columns);
  const auto dims = static_cast<std::uint32_t>(spread.low.size());
  const auto place = placement == ReferencePlacement::kInner ? place_inner : place_outer;
  ReferencePoints references{count, dims, metric, {spread.scale, HUGE_VAL}, {}};
  references.coordinates.resize(std::size_t{count} * dims);
  for (std::uint32_t number = 0; number < count; ++number)
    place(spread, number, count, dims, references.coordinates.data() + std::size_t{number} * dims);
  double largest = 0;
  std::vector<double> distances(count);
  for (const SampledRow row : sample.rows) {
    reference_distances(references, *row.data, row.row, row.row + 1, distances.data(), 1);
    for (const double distance : distances) largest = std::max(largest, distance);
  }
  references.frame.most = kBeyondSample * largest;
  return references;
}

ReferencePoints place_reference_points(const JoinRequest& request, const Strategy& strategy) {
  if (strategy.reference_points == 0) return {};
  const Sample sample = take_sample(request);
  return place_reference_points(request.metric(),
                                ordinary_sample(request.sides, sample.left, sample.right),
                                strategy.reference_points, strategy.reference_placement);
}

std::uint32_t reference_point_count(const Knobs& knobs) {
  return knobs.reference_points == 0 ? kDefaultReferencePoints
                                     : std::min(knobs.reference_points, kMaxReferencePoints);
}

std::uint32_t most_reference_points(const JoinRequest& request) {
  const IndexMethod asked = request.knobs.index;
  const bool considered = asked == IndexMethod::kReferencePoints ||
                          (asked == IndexMethod::kAuto && request.left().dims > kFewDimensions);
  return considered ? reference_point_count(request.knobs) : 0;
}

void reference_distances(const ReferencePoints& references, const Dataset& data,
                         std::uint64_t first, std::uint64_t end, double* distances,
                         std::uint64_t stride) {
  switch (references.metric) {
    case Metric::kL1:
      return distances_of<Metric::kL1>(references, data, first, end, distances, stride);
    case Metric::kLInf:
      return distances_of<Metric::kLInf>(references, data, first, end, distances, stride);
    default:
      return distances_of<Metric::kL2>(references, data, first, end, distances, stride);
  }
}

}  // namespace gpujoin
