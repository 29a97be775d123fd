// The background worker that starts the service, watches it, and does nothing else.
#pragma once

#include "engine/request/status.h"
#include "pg/compat.h"

namespace gpujoin {

/// Registers the worker where the library is preloaded by the postmaster.
void register_supervisor();

/// Whether the postmaster has registered the worker: it starts with the server.
bool is_preloaded();

/// Starts the worker if none is at work, without waiting for it. Returns the reason if there can be
/// none. A session that has tried does not try again for ten seconds.
Status start_supervisor();

}  // namespace gpujoin

extern "C" PGDLLEXPORT void gpujoin_supervisor(Datum preloaded);
