// What the joins of a session did, on its way to the service, which adds up what all sessions did.
// Nothing here waits or raises errors: a report that cannot be sent now is sent with the next one.
#pragma once

#include "service/protocol/messages.h"

namespace gpujoin {

/// Counts a join, or a part of what one did. It is sent to the service, where one is running, at
/// once or, a tenth of a second after the report before, with the next one or at the session's end.
void report_join(const service::JoinCounts& more);

/// Sends what was counted and not sent yet.
void send_reports();

}  // namespace gpujoin
