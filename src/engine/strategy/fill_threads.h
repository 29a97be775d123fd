// How many threads of a device write the pairs of a point together [load-imbalance, section III-A]:
// decided from counts, which are known before a pair is written. One thread for each point scatters
// its writes, and leaves a device idle where few points have nearly all pairs; with many threads
// for each point, most idle where a point has few candidates.
#pragma once

#include <cstdint>

namespace gpujoin {

/// Where more threads pay, fitted to a device.
struct FillThresholds {
  double candidates_for_eight;  ///< of a point in one neighbouring cell
  double pairs_for_eight;       ///< pairs_beside_a_pair()
  double pairs_for_warp;        ///< likewise
};

/// How many pairs the point of a pair has, on average over pairs and not over points, so that a few
/// points with nearly all pairs count for what they are. Row i has the pairs offsets[i] ..
/// offsets[i + 1] - 1. Reads 1,024 rows at most, evenly spread, the last one among them.
double pairs_beside_a_pair(const std::uint64_t* offsets, std::uint64_t rows);

/// 1, 8 or 32. `candidates` is their average number for a point in one neighbouring cell.
std::uint32_t threads_for_filling(const FillThresholds& thresholds, double candidates,
                                  double pairs);

}  // namespace gpujoin
