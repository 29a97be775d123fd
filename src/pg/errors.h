// How an engine's Status becomes a PostgreSQL error, and which errors of PostgreSQL can be dropped.
#pragma once

#include "engine/request/status.h"

namespace gpujoin {

/// Raises `status`, which is none of kOk, kEnd and kInterrupted. It longjmps: no frame with
/// destructors may be left below, so it is called in src/pg only, after the engine has returned.
[[noreturn]] void raise_status(const Status& status);

/// Whether an error is about the data, or about the size of a value.
bool is_about_value(int code);

/// Whether an error is about the server or the session, whatever is computed: it was cancelled or
/// ran out of something, a file or another session is in the way.
bool is_about_server(int code);

}  // namespace gpujoin
