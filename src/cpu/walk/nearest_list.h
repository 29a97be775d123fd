// The nearest right points of a left one so far, by sums that select: the k nearest and those that
// lie so close behind them that only the definition tells.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/request/buffer.h"

namespace gpujoin::cpu {

/// A right point by its position, with its sum.
struct Selected {
  double sum;
  std::uint32_t position;
};

class NearestList {
 public:
  /// So many are kept sorted; of more, the first k are found now and then.
  static constexpr std::uint64_t kSorted = 32;
  /// Room for so many there must be for a k.
  static std::uint64_t room_for(std::uint64_t k) { return k + std::max(kSorted, k / 4); }

  NearestList(Selected* place, std::uint64_t k) : found_(place), k_(k), room_(room_for(k)) {}

  void clear() { size_ = 0, full_at_ = k_; }
  bool is_full() const { return size_ == room_; }
  std::uint64_t size() const { return size_; }
  Selected* begin() { return found_; }

  /// Puts one more in, where there is room. Returns whether it is time to take the k-th.
  bool add(Selected one) {
    if (k_ > kSorted) {
      found_[size_++] = one;
      return size_ >= full_at_;
    }
    std::uint64_t at = size_++;
    for (; at > 0 && found_[at - 1].sum > one.sum; --at) found_[at] = found_[at - 1];
    found_[at] = one;
    return size_ >= k_ && at < k_;
  }

  /// The k-th smallest sum, where there are so many.
  double kth() {
    if (k_ > kSorted) {
      std::nth_element(found_, found_ + (k_ - 1), found_ + size_, comes_first);
      full_at_ = k_ + (room_ - k_) / 2;
    }
    return found_[k_ - 1].sum;
  }

  void drop_beyond(double bound) {
    if (k_ <= kSorted) {
      while (size_ > 0 && found_[size_ - 1].sum > bound) --size_;
    } else {
      size_ = static_cast<std::uint64_t>(
          std::remove_if(found_, found_ + size_, [=](Selected s) { return s.sum > bound; }) -
          found_);
    }
  }

  /// Leaves the first `size` of what the caller has put in another order.
  void keep(std::uint64_t size) {
    size_ = size;
    if (k_ <= kSorted) std::sort(found_, found_ + size_, comes_first);
  }

 private:
  static bool comes_first(const Selected& a, const Selected& b) { return a.sum < b.sum; }

  Selected* found_;
  std::uint64_t k_, room_;
  std::uint64_t size_ = 0;
  std::uint64_t full_at_ = 0;  ///< the k-th is taken when there are so many
};

}  // namespace gpujoin::cpu
