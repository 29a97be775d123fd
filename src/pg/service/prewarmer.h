// Background workers that make the calls of gpu_prewarmed again: one asks for the databases and
// runs another one in each of them.
#pragma once

#include "pg/compat.h"

extern "C" {
#include "postmaster/bgworker.h"
}

namespace gpujoin {

/// Starts the worker that has all databases prewarmed. Raises nothing. Returns null if the server
/// has no free worker process; else the handle is in the current memory context.
BackgroundWorkerHandle* start_prewarmer();

}  // namespace gpujoin

extern "C" PGDLLEXPORT void gpujoin_prewarmer(Datum database);
