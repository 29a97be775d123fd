// Lines for the server's log, which is the service's standard error.
#pragma once

namespace gpujoin::service {

/// Writes one line, printf style, in the form of PostgreSQL's own with its usual prefix.
void log_line(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace gpujoin::service
