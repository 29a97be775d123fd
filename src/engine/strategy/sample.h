// A small sample of the points, and how often two of them lie close: what strategy and row
// estimates rest on.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/request/request.h"

namespace gpujoin {

/// A sampled pair of points, by their positions in the two samples.
struct SamplePair {
  std::uint16_t left;
  std::uint16_t right;
};

/// Up to 512 points a side, one from each of as many equal ranges of rows, so never the same twice.
struct Sample {
  std::vector<std::uint64_t> left;   ///< rows of the left dataset
  std::vector<std::uint64_t> right;  ///< rows of the right one; of a self-join the same as left
  std::vector<SamplePair> pairs;     ///< every pair of two different points
};

/// The rows that a sample takes of so many. Deterministic.
std::vector<std::uint64_t> sample_rows(std::uint64_t rows);

/// Samples data that is in memory, which whatever reads a sample needs as well.
Sample take_sample(const JoinRequest& request);

/// How many sampled pairs are within eps.
std::uint64_t count_matches(const JoinRequest& request, const Sample& sample);

}  // namespace gpujoin
