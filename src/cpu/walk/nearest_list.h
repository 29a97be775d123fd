// The nearest right points of a left one so far: the k nearest and those that lie so close behind
// them that only ids, or the definition, tell.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/nearest.h"

namespace gpujoin::cpu {

/// Of neighbours whose raw distances are the definition's or sums in another order, as the caller
/// has it.
class NearestList {
 public:
  /// So many are kept sorted; of more, the first k are found now and then.
  static constexpr std::uint64_t kSorted = 32;
  /// Room for so many there must be for a k.
  static std::uint64_t room_for(std::uint64_t k) { return k + std::max(kSorted, k / 4); }

  NearestList(Neighbor* place, std::uint64_t k) : found_(place), k_(k), room_(room_for(k)) {}

  void clear() { size_ = 0, full_at_ = k_; }
  bool is_full() const { return size_ == room_; }
  std::uint64_t size() const { return size_; }
  Neighbor* begin() { return found_; }

  /// Puts one more in, where there is room. Returns whether it is time to take the k-th.
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

  /// The k-th smallest sum, where there are so many.
  double kth() {
    if (k_ > kSorted) {
      std::nth_element(found_, found_ + (k_ - 1), found_ + size_, comes_first);
      full_at_ = k_ + (room_ - k_) / 2;
    }
    return found_[k_ - 1].raw;
  }

  void drop_beyond(double bound) {
    if (k_ <= kSorted) {
      while (size_ > 0 && found_[size_ - 1].raw > bound) --size_;
    } else {
      size_ = static_cast<std::uint64_t>(
          std::remove_if(found_, found_ + size_, [=](Neighbor s) { return s.raw > bound; }) -
          found_);
    }
  }

  /// Leaves the first `size` of what the caller has put in another order.
  void keep(std::uint64_t size) {
    size_ = size;
    if (k_ <= kSorted) std::sort(found_, found_ + size_, comes_first);
  }

 private:
  static bool comes_first(const Neighbor& a, const Neighbor& b) { return a.raw < b.raw; }

  Neighbor* found_;
  std::uint64_t k_, room_;
  std::uint64_t size_ = 0;
  std::uint64_t full_at_ = 0;  ///< the k-th is taken when there are so many
};

}  // namespace gpujoin::cpu
