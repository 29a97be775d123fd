// A small sample of the points, and how often two of them lie close: what strategy and row
// estimates rest on.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/request/request.h"

namespace gpujoin {

/// Points of each side, kSampleRows at most: one from each of as many equal ranges of rows, so that
/// none comes twice.
struct Sample {
  std::vector<std::uint64_t> left;   ///< rows of the left dataset
  std::vector<std::uint64_t> right;  ///< rows of the right one; of a self-join the same as left
  bool self_join;

  /// Pairs of two different points, of a self-join in one order.
  std::size_t pair_count() const {
    return self_join ? left.size() * (left.size() - 1) / 2 : left.size() * right.size();
  }
};

/// Calls visit(position in left, position in right) for one pair of `step`.
template <class Visit>
void visit_pairs(const Sample& sample, std::size_t step, const Visit& visit) {
  std::size_t skipped = 0;
  for (std::size_t left = 0; left < sample.left.size(); ++left) {
    std::size_t right = (sample.self_join ? left + 1 : 0) + skipped;
    for (; right < sample.right.size(); right += step) visit(left, right);
    skipped = right - sample.right.size();
  }
}

inline constexpr std::uint64_t kSampleRows = 512;

/// The rows that a sample takes of so many, `most` or fewer. Deterministic.
std::vector<std::uint64_t> sample_rows(std::uint64_t rows, std::uint64_t most = kSampleRows);

/// Samples data that is in memory, which whatever reads a sample needs as well.
Sample take_sample(const JoinRequest& request, std::uint64_t most_rows = kSampleRows);

/// How many sampled pairs are within eps, by all of them, or fewer in many dimensions.
std::uint64_t count_matches(const JoinRequest& request, const Sample& sample);

/// A pair by its points' positions in the sample.
struct SampledPair {
  std::uint16_t left, right;
};

/// The same where no other pairs than these can be.
std::uint64_t count_matches(const JoinRequest& request, const Sample& sample,
                            const std::vector<SampledPair>& pairs);

}  // namespace gpujoin
