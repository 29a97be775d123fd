// How engines report: plain values that cross the C boundary. No exception, no PostgreSQL error.
#pragma once

#include <cstdint>

namespace gpujoin {

enum class StatusCode : std::int32_t {
  kOk,
  kEnd,              ///< next_batch: the result is complete
  kInterrupted,      ///< next_batch: the interrupt flag is up, or patience at an end; call again
  kInvalidArgument,  ///< the request cannot be served as it stands
  kMemoryLimit,      ///< the request's memory limit is too small
  kOutOfMemory,      ///< the machine has no memory or no thread left
  kUnavailable,      ///< the engine cannot work on this machine
  kDeviceFailure,    ///< the device failed; the hint tells whether the session can go on
  kCallerFailed,     ///< a function of the caller failed, such as a RowFile's; the caller knows why
  kInternal,         ///< a defect of gpujoin
};

struct Status {
  StatusCode code = StatusCode::kOk;
  char message[248] =
      "";               ///< one sentence fragment, lower case, as PostgreSQL's message style has it
  char hint[248] = "";  ///< what the user can do about it; may be empty

  bool ok() const { return code == StatusCode::kOk; }
};

/// Fills a Status, printf style; longer texts are cut. `hint` may be null.
Status make_status(StatusCode code, const char* hint, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

}  // namespace gpujoin
