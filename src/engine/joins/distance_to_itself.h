// The distance of a row and itself, which a join of two datasets counts as any other.
#pragma once

#include "core/distance.h"
#include "core/hamming.h"
#include "engine/request/dataset.h"

namespace gpujoin {

/// By cosine it may be a little more than 0; of a row that matches nothing it is NaN, or by Jaccard
/// distance 1. The data is in memory.
inline double distance_to_itself(Metric metric, const Dataset& data, std::uint64_t row) {
  if (metric == Metric::kHamming) return 0;
  if (metric == Metric::kJaccard) {
    const auto* const words = point<std::uint64_t>(data, row);
    return jaccard_distance(words, words, data.dims);
  }
  const auto raw = [&](const auto* point) {
    return distance_from_raw(metric, raw_distance(metric, point, point, data.dims));
  };
  return data.scalar == ScalarType::kFloat32 ? raw(point<float>(data, row))
                                             : raw(point<double>(data, row));
}

}  // namespace gpujoin
