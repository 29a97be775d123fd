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
  /// What another process has made. Takes the descriptor, whatever comes of it.
  Region(int file, std::uint64_t bytes, bool writable);
  Region(Region&& other) noexcept : region_(std::exchange(other.region_, {})) {}
  Region& operator=(Region&& other) noexcept {
    std::swap(region_, other.region_);
    return *this;
  }
  ~Region() { close_region(&region_); }

  /// Makes it at least so large; the address may become another one.
  void grow(std::uint64_t bytes);
  /// Another descriptor of the same memory, for who may only read it.
  int open_for_reading() const;

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
};

}  // namespace gpujoin::service
