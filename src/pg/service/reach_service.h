// Finding the service, and starting it where there is none.
#pragma once

#include "pg/service/connection.h"

namespace gpujoin {

/// Begins a conversation with the service. Starts the service if none is running, and waits
/// `patience_ms` for it, or for its greeting. A caller with 0 can do without the service: it waits
/// a moment for one that is busy, and later calls then leave the service alone for ten seconds.
/// Raises interrupts. Returns false with the reason in *why if there is no conversation.
bool reach_service(Connection* connection, long patience_ms, Status* why);

/// Connects to a running service, for the planner: starts none, and waits 50 ms at most. If the
/// service was too busy to answer, returns false for the next ten seconds.
bool find_service(Connection* connection);

}  // namespace gpujoin
