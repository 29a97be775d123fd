// Lines for the server's log, which is the service's standard error.
#pragma once

#include <atomic>
#include <cstdint>

namespace gpujoin::service {

/// Writes one line, printf style, in the form of PostgreSQL's own with its usual prefix.
void log_line(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// What may happen many times a second and is worth one line a minute. For all threads.
class RareMatter {
 public:
  /// True if the last line was written a minute ago or never; then the caller writes one.
  bool is_due();

 private:
  std::atomic<std::int64_t> next_us_{0};
};

}  // namespace gpujoin::service
