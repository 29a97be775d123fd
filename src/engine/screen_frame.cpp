#include "engine/screen_frame.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/tile_screen.h"
#include "engine/directions.h"
#include "engine/outliers.h"
#include "engine/sample.h"

namespace gpujoin {
namespace {

/// Adds the sampled points of one side, or their directions, which `directions` holds; the added
/// rows are rows of `points`.
void add_rows(const JoinRequest& request, const Dataset& side, std::vector<float>& directions,
              Dataset& points, std::vector<SampledRow>& rows) {
  std::vector<std::uint64_t> sampled = sample_rows(side.rows);
  points = request.metric == Metric::kCosine
               ? sampled_directions(side, request.left.dims, sampled, directions)
               : side;
  for (const SampledRow row : spread_rows(points, sampled)) rows.push_back(row);
}

}  // namespace

ScreenFrame choose_screen_frame(const JoinRequest& request, bool reorder) {
  const std::uint32_t dims = request.left.dims;
  std::vector<float> left_directions, right_directions;
  Dataset left, right;
  std::vector<SampledRow> rows;
  add_rows(request, request.left, left_directions, left, rows);
  if (!request.self_join) add_rows(request, request.right, right_directions, right, rows);
  // A point that is cut is rechecked against points that are cut to about the same place, and
  // against no others.
  const ColumnStatistics columns =
      column_statistics(ordinary_rows(std::move(rows), dims, kManyOutliers), dims);

  ScreenFrame frame;
  frame.center = columns.mean;
  double half = 0, largest = 0;
  for (std::uint32_t d = 0; d < dims; ++d) {
    const double center = frame.center[d];
    half = std::max({half, columns.high[d] / 2 - center / 2, center / 2 - columns.low[d] / 2});
    largest = std::max(largest, std::fabs(center));
  }
  frame.scale = centred_scale(half, largest);
  frame.order.resize(dims);
  std::iota(frame.order.begin(), frame.order.end(), 0u);
  if (reorder) frame.order = by_variance(columns);
  return frame;
}

}  // namespace gpujoin
