// Finding the service, and starting it where there is none.
#pragma once

#include "pg/service/connection.h"

namespace gpujoin {

/// Begins a conversation with the service. Where none is running one is started, and waited for so
/// many milliseconds. False: it cannot be had now, for the reason in *why. Interrupts are raised.
bool reach_service(Connection* connection, long patience_ms, Status* why);

}  // namespace gpujoin
