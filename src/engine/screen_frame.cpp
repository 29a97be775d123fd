#include "engine/screen_frame.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/tile_screen.h"
#include "engine/directions.h"
#include "engine/outliers.h"
#include "engine/sample.h"

namespace gpujoin {
namespace {

/// The sampled points of one side, or their directions, which `directions` holds.
void add_sampled_rows(const JoinRequest& request, const Dataset& side,
                      std::vector<float>& directions, Dataset& points,
                      std::vector<SampledRow>& rows) {
  std::vector<std::uint64_t> sampled = sample_rows(side.rows);
  points = request.metric == Metric::kCosine
               ? sampled_directions(side, request.left.dims, sampled, directions)
               : side;
  for (const std::uint64_t row : sampled) rows.push_back({&points, row});
}

}  // namespace

ScreenFrame choose_screen_frame(const JoinRequest& request, bool reorder) {
  const std::uint32_t dims = request.left.dims;
  std::vector<float> left_directions, right_directions;
  Dataset left, right;
  std::vector<SampledRow> rows;
  add_sampled_rows(request, request.left, left_directions, left, rows);
  if (!request.self_join) add_sampled_rows(request, request.right, right_directions, right, rows);
  // A point that is cut is compared again with points that are cut to about the same place, no
  // more.
  const ColumnStatistics columns =
      column_statistics(ordinary_rows(rows, dims, kManyOutliers), dims);

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
