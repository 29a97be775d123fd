// A join of points as its walks see it: what every worker reads and none writes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cluster.h"
#include "core/threshold.h"
#include "cpu/index/grid_index.h"
#include "cpu/scan/scan.h"
#include "engine/request/result.h"

namespace gpujoin::cpu {

struct JoinPlan {
  Metric metric;
  PairSelection pairs;
  Output::Kind output;
  bool one_suffices;  ///< Output::matched_rows()
  Threshold threshold;
  double reach;               ///< that of the sorted column
  std::uint32_t cell_radius;  ///< IndexPlan::cell_radius
  ScreenBounds screen;        ///< when strategy.screened
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
  const PairSums* sums;  ///< of Output::kSums
  PairKeys keys;
  std::uint32_t open_keys;   ///< those to be compared, a bit each
  bool sorts_key;            ///< the sorted column is a key, which windows of one point decide
  std::uint64_t min_points;  ///< of Output::kClusters
  BorderRule borders;        ///< likewise

  bool self_join() const { return is_self_join; }
  /// Half a walk meets each unordered pair of points once; see core/cell_walk.h.
  bool half() const { return strategy.access_pattern != AccessPattern::kFull; }
  /// Whether points that share windows may have keys that do not belong to all pairs in these.
  bool compares_keys() const { return open_keys != 0 || sorts_key; }
  bool mirrored() const { return is_mirrored(strategy.access_pattern, pairs); }
  /// The raw distances of a left point and `count` right ones by the definition.
  void exact_raws(std::uint32_t position, const std::uint32_t* neighbors, std::size_t count,
                  double* raws) const;
};

}  // namespace gpujoin::cpu
