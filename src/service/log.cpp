#include "service/log.h"

#include <sys/time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <ctime>

#include "service/clock.h"

namespace gpujoin::service {

void log_line(const char* format, ...) {
  timeval now = {};
  gettimeofday(&now, nullptr);
  std::tm parts = {};
  gmtime_r(&now.tv_sec, &parts);
  char when[32], text[700], line[800];
  std::strftime(when, sizeof when, "%F %T", &parts);
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const int length =
      std::snprintf(line, sizeof line, "%s.%03d UTC [%d] LOG:  gpujoin_service: %s\n", when,
                    static_cast<int>(now.tv_usec / 1000), static_cast<int>(getpid()), text);
  // One write, so that lines of several processes do not mix. A failure has nobody to report to.
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, line, static_cast<std::size_t>(length));
}

bool RareMatter::is_due() {
  constexpr std::int64_t kPauseUs = 60000000;
  const std::int64_t now = now_us();
  std::int64_t next = next_us_;
  return now >= next && next_us_.compare_exchange_strong(next, now + kPauseUs);
}

}  // namespace gpujoin::service
