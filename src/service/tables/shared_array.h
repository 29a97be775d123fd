// Numbers of a table's rows that versions of the table share until one of them changes some.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "service/region.h"

namespace gpujoin::service {

/// A copy has the same memory until open() of one of them. Other threads release copies under a
/// lock that the writer takes later. Members throw std::bad_alloc.
template <class T>
class SharedArray {
 public:
  SharedArray() = default;
  /// The first numbers of a region, which is never written.
  SharedArray(Region region, std::uint64_t size) : size_(size) {
    const auto owner = std::make_shared<Region>(std::move(region));
    data_ = {owner, owner->as<T>()};
  }

  std::uint64_t size() const { return size_; }
  std::uint64_t bytes() const { return std::max(size_, room_) * sizeof(T); }
  const T* data() const { return data_.get(); }
  T operator[](std::uint64_t i) const { return data_.get()[i]; }
  /// For writing, after open().
  T& operator[](std::uint64_t i) { return data_.get()[i]; }

  /// Makes the array `size` numbers long, in memory of its own. New ones are 0.
  void open(std::uint64_t size) {
    if (size > room_ || data_.use_count() > 1) {
      const std::uint64_t room = size_ > 0 ? size + size / 8 : size;
      const std::shared_ptr<T[]> own(new T[room]);
      std::copy_n(data_.get(), std::min(size, size_), own.get());
      data_ = {own, own.get()};
      room_ = room;
    }
    if (size > size_) std::fill(data_.get() + size_, data_.get() + size, T{});
    size_ = size;
  }

 private:
  std::shared_ptr<T> data_;
  std::uint64_t size_ = 0;
  std::uint64_t room_ = 0;  ///< of the array's own memory; 0 while it lies in a region
};

}  // namespace gpujoin::service
