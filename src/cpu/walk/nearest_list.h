// The nearest right points of a left one so far: the k nearest and those that lie so close behind
// them that only ids, or the definition, tell.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/nearest.h"

namespace gpujoin::cpu {

/// A neighbour's raw distance is the definition's or a sum in another order, as the caller has it.
class NearestList {
 public:
  /// So many are kept sorted; of more, some that are not among the first k are left out now and
  /// then.
  static constexpr std::uint64_t kSorted = 32;
  /// Room for so many there must be for a k.
  static std::uint64_t room_for(std::uint64_t k) { return k + std::max(kSorted, k / 4); }

  NearestList(Neighbor* place, std::uint64_t k) : found_(place), k_(k), room_(room_for(k)) {}

  void clear() { size_ = 0, full_at_ = k_; }
  bool is_full() const { return size_ == room_; }
  std::uint64_t size() const { return size_; }
  Neighbor* begin() { return found_; }

  /// Puts one more in, where there is room. Returns whether it is time to take the bound.
  bool add(Neighbor one) {
    if (k_ > kSorted) {
      found_[size_++] = one;
      return size_ >= full_at_;
    }
    std::uint64_t at = size_++;
    for (; at > 0 && found_[at - 1].raw > one.raw; --at) found_[at] = found_[at - 1];
    found_[at] = one;
    return size_ >= k_ && at < k_;
  }

  /// A raw distance that k neighbours do not exceed, of those in the list, and few others: of a
  /// sorted list the k-th, the smallest such. There are k.
  double bound() {
    if (k_ <= kSorted) return found_[k_ - 1].raw;
    full_at_ = k_ + (room_ - k_) / 2;
    return bound_of_many();
  }

  void drop_beyond(double bound) {
    if (k_ <= kSorted) {
      while (size_ > 0 && found_[size_ - 1].raw > bound) --size_;
    } else {
      std::uint64_t left = 0;  // without a branch that would be guessed wrong
      for (std::uint64_t i = 0; i < size_; ++i) {
        const Neighbor one = found_[i];
        found_[left] = one;
        left += one.raw <= bound ? 1 : 0;
      }
      size_ = left;
      if (size_ >= full_at_) full_at_ = room_;  // many are equally far away
    }
  }

  /// Leaves the first `size` of what the caller has put in another order.
  void keep(std::uint64_t size) {
    size_ = size;
    if (k_ <= kSorted) std::sort(found_, found_ + size_, comes_first);
  }

 private:
  /// By interpolation, for so many distances are mostly spread evenly.
  double bound_of_many() {
    constexpr int kMostPasses = 8;
    const std::uint64_t most = k_ + (room_ - k_) / 4;
    const double wanted = static_cast<double>(k_ + most) / 2;
    double low = 0, high = 0;
    std::uint64_t below_low = 0, below_high = size_;
    for (std::uint64_t i = 0; i < size_; ++i) high = std::max(high, found_[i].raw);
    for (int pass = 0; pass < kMostPasses && below_high > most; ++pass) {
      const double share =
          (wanted - static_cast<double>(below_low)) / static_cast<double>(below_high - below_low);
      const double at = low + (high - low) * std::clamp(share, 0.125, 0.875);
      std::uint64_t below = 0;
      for (std::uint64_t i = 0; i < size_; ++i) below += found_[i].raw <= at ? 1 : 0;
      (below < k_ ? low : high) = at;
      (below < k_ ? below_low : below_high) = below;
    }
    if (below_high <= most) return high;
    std::nth_element(found_, found_ + (k_ - 1), found_ + size_, comes_first);
    return found_[k_ - 1].raw;
  }

  static bool comes_first(const Neighbor& a, const Neighbor& b) { return a.raw < b.raw; }

  Neighbor* found_;
  std::uint64_t k_, room_;
  std::uint64_t size_ = 0;
  std::uint64_t full_at_ = 0;  ///< the bound is taken when there are so many
};

}  // namespace gpujoin::cpu
