// Opens an engine that is a shared object of its own, and makes sure that it was built with the
// same headers as the caller.
#pragma once

#include "engine/engine.h"

namespace gpujoin {

/// kUnavailable where the engine called `name` was built with other headers. Reads no member before
/// the ones that show it to be there.
Status check_table(const EngineTable& table, const char* name);

/// Opens the object at `path`, checks its table and sets *engine to it; kUnavailable comes with the
/// reason why not. The object stays mapped: a driver that was started cannot be unloaded.
Status load_engine(const char* path, const char* name, const EngineTable** engine);

}  // namespace gpujoin
