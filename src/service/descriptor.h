// A file descriptor that somebody owns.
#pragma once

#include <unistd.h>

#include <utility>

namespace gpujoin::service {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int file) : file_(file) {}
  Descriptor(Descriptor&& other) noexcept : file_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~Descriptor() {
    if (file_ >= 0) close(file_);
  }

  int get() const { return file_; }  ///< -1: there is none
  int release() { return std::exchange(file_, -1); }

 private:
  int file_ = -1;
};

}  // namespace gpujoin::service
