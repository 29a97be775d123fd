// What the tasks of a walk are expected to cost, before it begins: from a look at some of its
// items. The unit is the time that a walk takes for a candidate.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gpujoin::cpu {

/// The cost of each item of a walk, taken to be that of the nearest sample.
class WorkProfile {
 public:
  /// cost_of(item) is what an item costs. Samples lie at equal distances, as many as take no time
  /// beside the walk itself. Throws std::bad_alloc.
  template <class Cost>
  WorkProfile(std::uint64_t items, const Cost& cost_of) {
    constexpr std::uint64_t kMostSamples = 1 << 14;
    constexpr std::uint64_t kSampleShare = 1 << 18;  // a sample takes about a fiftieth of so much
    const std::uint64_t few = std::clamp<std::uint64_t>(items / 256, 16, 64);
    take(items, few, cost_of);
    const std::uint64_t worth = std::min(of(0, items) / kSampleShare, kMostSamples);
    if (worth > few) take(items, worth, cost_of);
  }

  /// What the items first .. end - 1 cost; 1 at least for each. Ranges beside each other cost
  /// together what they cost alone.
  std::uint64_t of(std::uint64_t first, std::uint64_t end) const {
    return until(end) - until(first);
  }

 private:
  template <class Cost>
  void take(std::uint64_t items, std::uint64_t samples, const Cost& cost_of) {
    step_ = std::max<std::uint64_t>(1, items / samples);
    costs_.clear();
    sums_.assign(1, 0);
    for (std::uint64_t first = 0; first < items; first += step_) {
      const std::uint64_t size = std::min(step_, items - first);
      const std::uint64_t cost = cost_of(first + size / 2);
      costs_.push_back(std::max<std::uint64_t>(1, cost));
      sums_.push_back(sums_.back() + size * costs_.back());
    }
  }
  std::uint64_t until(std::uint64_t item) const {
    const std::uint64_t place = item / step_, rest = item % step_;
    return place < costs_.size() ? sums_[place] + rest * costs_[place] : sums_.back();
  }

  std::uint64_t step_ = 1;
  std::vector<std::uint64_t> costs_;  ///< of an item in each stretch of step_
  std::vector<std::uint64_t> sums_;   ///< of the stretches before each, and of all
};

}  // namespace gpujoin::cpu
