// Host memory of engines: every large array is a Buffer, counted against the request's limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "engine/request/memory_budget.h"

namespace gpujoin {

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

}  // namespace gpujoin
