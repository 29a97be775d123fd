// The bound on the memory that a join may hold, on the host or on a device.
#pragma once

#include <atomic>
#include <cstdint>

namespace gpujoin {

/// Thrown inside engines when an allocation would exceed the limit of its budget.
struct MemoryLimitExceeded {
  std::uint64_t needed_bytes;
  std::uint64_t limit_bytes;
};

class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t limit_bytes) : limit_(limit_bytes) {}  ///< 0 = no limit

  /// While it is not enforced, what exceeds the limit is taken all the same.
  void enforce(bool enforced) { enforced_ = enforced; }

  void take(std::uint64_t bytes) {
    const std::uint64_t used = used_.fetch_add(bytes) + bytes;
    if (limit_ != 0 && used > limit_ && enforced_) {
      used_.fetch_sub(bytes);
      throw MemoryLimitExceeded{used, limit_};
    }
    std::uint64_t peak = peak_.load();
    while (used > peak && !peak_.compare_exchange_weak(peak, used)) {
    }
  }
  void give_back(std::uint64_t bytes) { used_.fetch_sub(bytes); }
  std::uint64_t peak() const { return peak_.load(); }
  std::uint64_t used() const { return used_.load(); }

 private:
  std::uint64_t limit_;
  std::atomic<bool> enforced_{true};
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> peak_{0};
};

}  // namespace gpujoin
