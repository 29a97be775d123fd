// A join of points as its walks see it: what every worker reads and none writes.
#pragma once

#include <cstdint>

#include "core/threshold.h"
#include "cpu/index/grid_index.h"
#include "cpu/scan/scan.h"
#include "engine/request/result.h"

namespace gpujoin::cpu {

struct JoinPlan {
  Metric metric;
  PairSelection pairs;
  Output::Kind output;
  Threshold threshold;
  double reach;         ///< that of the indexed columns: windows and cells
  ScreenBounds screen;  ///< when strategy.screened
  Strategy strategy;
  const IndexLayout* layout;
  ScanKernel kernel;
  bool is_self_join;
  const GridIndex* left;
  const GridIndex* right;      ///< the same as left in a self-join
  const Dataset* left_points;  ///< whose distances count; an index may hold their directions
  const Dataset* right_points;
  const Dataset* left_indexed;  ///< what the left index is of
  std::uint64_t batch_entries;

  bool self_join() const { return is_self_join; }
  /// Half a walk meets each unordered pair of points once; see core/cell_walk.h.
  bool half() const { return strategy.access_pattern != AccessPattern::kFull; }
  bool mirrored() const { return is_mirrored(strategy.access_pattern, pairs); }
  /// The raw distance of two points by the definition.
  double exact_raw(std::uint32_t position, std::uint32_t neighbor) const;
};

}  // namespace gpujoin::cpu
