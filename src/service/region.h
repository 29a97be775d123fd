// Shared memory with an owner (protocol/shared_region.h has the functions).
#pragma once

#include <cstdint>
#include <utility>

#include "service/protocol/shared_region.h"

namespace gpujoin::service {

/// Members throw Failure.
class Region {
 public:
  Region() = default;
  /// Memory of so many bytes, all 0, that can grow.
  Region(const char* name, std::uint64_t bytes);
  /// Memory that a client has made and sealed, for reading. Takes the descriptor, whatever comes of
  /// it.
  Region(int file, std::uint64_t bytes);
  Region(Region&& other) noexcept
      : region_(std::exchange(other.region_, {})), is_sealed_(other.is_sealed_) {}
  Region& operator=(Region&& other) noexcept {
    std::swap(region_, other.region_);
    std::swap(is_sealed_, other.is_sealed_);
    return *this;
  }
  ~Region() { close_region(&region_); }

  /// Makes it at least so large; the address may become another one. Not for a client's memory.
  void grow(std::uint64_t bytes);
  /// Another descriptor of the same memory, for who may only read it.
  int open_for_reading() const;

  bool is_sealed() const { return is_sealed_; }  ///< by the client that has made it
  int file() const { return region_.file; }
  std::uint64_t bytes() const { return region_.bytes; }
  unsigned char* data() { return region_.base; }
  const unsigned char* data() const { return region_.base; }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(region_.base);
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(region_.base);
  }

 private:
  SharedRegion region_;
  bool is_sealed_ = false;
};

}  // namespace gpujoin::service
