// The time of day, as clients are told it.
#pragma once

#include <chrono>
#include <cstdint>

namespace gpujoin::service {

/// Microseconds since 1970.
inline std::int64_t now_us() {
  using std::chrono::duration_cast, std::chrono::microseconds, std::chrono::system_clock;
  return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace gpujoin::service
