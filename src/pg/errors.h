// How an engine's Status becomes a PostgreSQL error.
#pragma once

#include "engine/request/status.h"

namespace gpujoin {

/// Raises `status`, which is none of kOk, kEnd and kInterrupted. It longjmps: no frame with
/// destructors may be left below, so it is called in src/pg only, after the engine has returned.
[[noreturn]] void raise_status(const Status& status);

}  // namespace gpujoin
