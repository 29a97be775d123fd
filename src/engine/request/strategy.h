// How a join is run, and why: what engine/strategy chooses, engines follow, and EXPLAIN shows.
#pragma once

#include <cstdint>

#include "core/sort_code.h"
#include "engine/request/request.h"

namespace gpujoin {

/// What an index method is expected to cost; 0 where it was not considered.
struct MethodEstimate {
  double candidates;  ///< ordered pairs whose distance will be begun
  double ms;          ///< walking the index, by the WalkCosts
};

struct Strategy {
  IndexMethod index;
  /// k, the number of columns that are indexed: by the grid, or for tiles by the space-filling
  /// curve that sorts the points and by the tiles' boxes.
  std::uint32_t grid_dims;
  /// Columns from `dims` on, here and below, are keys, and after them distances to reference
  /// points.
  std::uint32_t grid_columns[kMaxGridDimensions];
  std::int32_t sort_column;  ///< points of a cell are sorted by it; kNoColumn: unsorted
  /// Where the values of these columns that are no outliers lie, or a little beyond: an index is
  /// laid over these ranges. Finite.
  Extent grid_ranges[kMaxGridDimensions];
  Extent sort_range;
  std::uint32_t reference_points;  ///< 0: none are used
  ReferencePlacement reference_placement;
  AccessPattern access_pattern;
  CellOrder cell_order;
  bool screened;            ///< sums in another order, decided by ScreenBounds
  bool reorder_dimensions;  ///< most selective columns first, in index and screen
  bool short_circuit;       ///< stop a sum once it exceeds the threshold
  MethodEstimate estimates[kIndexMethodCount];  ///< by IndexMethod
  double estimated_pairs;                       ///< ordered pairs within eps
  /// The same, rather too low than too high: a sample with few such pairs may have them by chance.
  double least_pairs;
  char reason[160];

  const MethodEstimate& estimate() const { return estimates[static_cast<int>(index)]; }
};

}  // namespace gpujoin
