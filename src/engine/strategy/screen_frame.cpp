#include "engine/strategy/screen_frame.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/tile_screen.h"
#include "engine/strategy/directions.h"
#include "engine/strategy/outliers.h"
#include "engine/strategy/sample.h"

namespace gpujoin {

ScreenFrame choose_screen_frame(const JoinRequest& request, bool reorder) {
  const std::uint32_t dims = request.left().dims;
  const IndexedSample sample(request);
  std::vector<SampledRow> rows = spread_rows(sample.request.sides, sample.left, sample.right);
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
