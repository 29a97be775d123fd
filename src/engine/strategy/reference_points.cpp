#include "engine/strategy/reference_points.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/strategy/outliers.h"

namespace gpujoin {
namespace {

// More reference points cost more searches than they save distances [COSS, section 6.4].
constexpr std::uint32_t kDefaultReferencePoints = 6;

// Few columns separate points better than distances made of them.
constexpr std::uint32_t kFewDimensions = 4;

/// How far beyond the largest distance of an ordinary sampled row reference distances still differ.
constexpr double kBeyondSample = 4;

std::vector<SampledRow> ordinary_rows_of(const JoinRequest& request, const Sample& sample) {
  return ordinary_rows(spread_rows(request.sides, sample.left, sample.right), request.left().dims);
}

/// What is known of each column, over some rows and scaled.
struct ScaledSpread {
  double scale = 1;
  std::vector<double> low, mean, high;
};

ScaledSpread scaled_spread(const std::vector<SampledRow>& rows, std::uint32_t dims) {
  const ColumnStatistics columns = column_statistics(rows, dims);
  ScaledSpread spread{1, columns.low, columns.mean, columns.high};
  double largest = 0;
  for (std::uint32_t d = 0; d < dims; ++d)
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

template <Metric M, class T>
void distances_of(const ReferencePoints& references, std::uint32_t number, const Dataset& data,
                  std::uint64_t first, std::uint64_t end, double* distances) {
  for (std::uint64_t row = first; row < end; ++row)
    *distances++ = reference_distance<M>(point<T>(data, row), references.point(number), data.dims,
                                         references.frame);
}

template <Metric M>
void distances_of(const ReferencePoints& references, std::uint32_t number, const Dataset& data,
                  std::uint64_t first, std::uint64_t end, double* distances) {
  if (data.scalar == ScalarType::kFloat32)
    distances_of<M, float>(references, number, data, first, end, distances);
  else
    distances_of<M, double>(references, number, data, first, end, distances);
}

}  // namespace

ReferencePoints place_reference_points(const JoinRequest& request, const Sample& sample,
                                       std::uint32_t count, ReferencePlacement placement) {
  const std::uint32_t dims = request.left().dims;
  const std::vector<SampledRow> rows = ordinary_rows_of(request, sample);
  const ScaledSpread spread = scaled_spread(rows, dims);
  const auto place = placement == ReferencePlacement::kInner ? place_inner : place_outer;
  ReferencePoints references{count, dims, request.metric(), {spread.scale, HUGE_VAL}, {}};
  references.coordinates.resize(std::size_t{count} * dims);
  for (std::uint32_t number = 0; number < count; ++number)
    place(spread, number, count, dims, references.coordinates.data() + std::size_t{number} * dims);
  double largest = 0;
  for (const SampledRow row : rows) {
    for (std::uint32_t number = 0; number < count; ++number) {
      double distance;
      reference_distances(references, number, *row.data, row.row, row.row + 1, &distance);
      largest = std::max(largest, distance);
    }
  }
  references.frame.most = kBeyondSample * largest;
  return references;
}

ReferencePoints place_reference_points(const JoinRequest& request, const Strategy& strategy) {
  if (strategy.reference_points == 0) return {};
  return place_reference_points(request, take_sample(request), strategy.reference_points,
                                strategy.reference_placement);
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

void reference_distances(const ReferencePoints& references, std::uint32_t number,
                         const Dataset& data, std::uint64_t first, std::uint64_t end,
                         double* distances) {
  switch (references.metric) {
    case Metric::kL1:
      return distances_of<Metric::kL1>(references, number, data, first, end, distances);
    case Metric::kLInf:
      return distances_of<Metric::kLInf>(references, number, data, first, end, distances);
    default:
      return distances_of<Metric::kL2>(references, number, data, first, end, distances);
  }
}

}  // namespace gpujoin
