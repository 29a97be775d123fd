// The background worker that starts the service, watches it, and does nothing else.
#pragma once

#include "pg/compat.h"

namespace gpujoin {

/// Registers the worker where the library is preloaded by the postmaster.
void register_supervisor();

/// Starts the worker where none is at work, without waiting for it. False: there can be none, for
/// the reason in *why. A session that has tried does not try again for a while.
bool start_supervisor(const char** why);

}  // namespace gpujoin

extern "C" PGDLLEXPORT void gpujoin_supervisor(Datum preloaded);
