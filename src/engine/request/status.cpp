#include "engine/request/status.h"

#include <cstdarg>
#include <cstdio>

namespace gpujoin {

Status make_status(StatusCode code, const char* hint, const char* format, ...) {
  Status status;
  status.code = code;
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(status.message, sizeof status.message, format, arguments);
  va_end(arguments);
  if (hint != nullptr) std::snprintf(status.hint, sizeof status.hint, "%s", hint);
  return status;
}

}  // namespace gpujoin
