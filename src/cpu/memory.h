// Host memory of the CPU engine: every large array is a Buffer, counted against the request's
// limit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace gpujoin::cpu {

/// Thrown when a Buffer would exceed the limit of its budget.
struct MemoryLimitExceeded {
  std::uint64_t needed_bytes;
  std::uint64_t limit_bytes;
};

class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t limit_bytes) : limit_(limit_bytes) {}  ///< 0 = no limit

  void take(std::uint64_t bytes) {
    const std::uint64_t used = used_.fetch_add(bytes) + bytes;
    if (limit_ != 0 && used > limit_) {
      used_.fetch_sub(bytes);
      throw MemoryLimitExceeded{used, limit_};
    }
    std::uint64_t peak = peak_.load();
    while (used > peak && !peak_.compare_exchange_weak(peak, used)) {
    }
  }
  void give_back(std::uint64_t bytes) { used_.fetch_sub(bytes); }
  std::uint64_t peak() const { return peak_.load(); }

 private:
  std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> peak_{0};
};

/// An uninitialised array of trivial elements, aligned to cache lines. Throws MemoryLimitExceeded
/// or std::bad_alloc.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(MemoryBudget& budget, std::size_t size) : size_(size) {
    if (size == 0) return;
    budget.take(bytes());
    data_ = static_cast<T*>(::operator new(bytes(), kAlignment, std::nothrow));
    if (data_ == nullptr) {
      budget.give_back(bytes());
      throw std::bad_alloc();
    }
    budget_ = &budget;
  }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~Buffer() {
    if (data_ == nullptr) return;
    ::operator delete(data_, kAlignment);
    budget_->give_back(bytes());
  }

  void swap(Buffer& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  std::size_t bytes() const { return size_ * sizeof(T); }

  MemoryBudget* budget_ = nullptr;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace gpujoin::cpu
