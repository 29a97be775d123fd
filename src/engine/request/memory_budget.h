// The bound on the memory that a join may hold, on the host or on a device.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace gpujoin {

/// Thrown inside engines when an allocation would exceed the limit of its budget.
struct MemoryLimitExceeded {
  std::uint64_t needed_bytes;
  std::uint64_t limit_bytes;
};

class MemoryBudget {
 public:
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

  explicit MemoryBudget(std::uint64_t limit_bytes) : limit_(limit_bytes) {}  ///< 0 = no limit
  /// A share of another one, which stays as long: what is taken of the share is taken of the whole.
  explicit MemoryBudget(std::shared_ptr<MemoryBudget> whole)
      : limit_(0), whole_(std::move(whole)) {}

  /// While it is not enforced, what exceeds the limit is taken all the same.
  void enforce(bool enforced) {
    if (whole_) whole_->enforce(enforced);
    enforced_ = enforced;
  }

  void take(std::uint64_t bytes) {
    if (whole_) whole_->take(bytes);
    const std::uint64_t used = used_.fetch_add(bytes) + bytes;
    if (limit_ != 0 && used > limit_ && enforced_) {
      used_.fetch_sub(bytes);
      throw MemoryLimitExceeded{used, limit_};
    }
    std::uint64_t peak = peak_.load();
    while (used > peak && !peak_.compare_exchange_weak(peak, used)) {
    }
  }
  void give_back(std::uint64_t bytes) {
    used_.fetch_sub(bytes);
    if (whole_) whole_->give_back(bytes);
  }
  std::uint64_t peak() const { return peak_.load(); }
  std::uint64_t used() const { return used_.load(); }
  /// Bytes that may still be taken; kUnlimited: any number.
  std::uint64_t left() const {
    const std::uint64_t of_whole = whole_ ? whole_->left() : kUnlimited;
    return limit_ == 0 ? of_whole : std::min(of_whole, limit_ - std::min(limit_, used()));
  }
  /// The limit for a join within this one: what is left, but for some bytes; 0: no limit.
  std::uint64_t limit_within(std::uint64_t held_back = 0) const {
    const std::uint64_t bytes = left();
    return bytes == kUnlimited ? 0 : bytes > held_back ? bytes - held_back : 1;
  }

 private:
  std::uint64_t limit_;
  std::shared_ptr<MemoryBudget> whole_;
  std::atomic<bool> enforced_{true};
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> peak_{0};
};

}  // namespace gpujoin
