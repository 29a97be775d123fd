// Time that passes, by a clock that nobody sets.
#pragma once

#include <chrono>

namespace gpujoin {

/// Runs from its construction.
class Stopwatch {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace gpujoin
