#include "engine/strategy/fill_threads.h"

#include <algorithm>

namespace gpujoin {

double pairs_beside_a_pair(const std::uint64_t* offsets, std::uint64_t rows) {
  constexpr std::uint64_t kMostSamples = 1024;
  const std::uint64_t samples = std::min(rows, kMostSamples);
  double pairs = 0, squares = 0;
  for (std::uint64_t i = 0; i < samples; ++i) {
    const std::uint64_t row = (i + 1) * rows / samples - 1;
    const auto own = static_cast<double>(offsets[row + 1] - offsets[row]);
    pairs += own;
    squares += own * own;
  }
  return pairs == 0 ? 0 : squares / pairs;
}

std::uint32_t threads_for_filling(const FillThresholds& thresholds, double candidates,
                                  double pairs) {
  if (pairs >= thresholds.pairs_for_warp) return 32;
  const bool wide = candidates >= thresholds.candidates_for_eight;
  return wide || pairs >= thresholds.pairs_for_eight ? 8 : 1;
}

}  // namespace gpujoin
