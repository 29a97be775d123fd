// The rows of a join's sides on their way to the service.
#pragma once

#include "pg/service/service_engine.h"

namespace gpujoin {

/// What a side's message names. Regions with a descriptor are copies, of this struct.
struct SentSide {
  service::SharedRegion coordinates, ids, scores, patches;
};

/// Fills the message of a side and appends its descriptors, which stay `shared`'s or `copies`'.
/// What is not in shared memory is copied there. kOutOfMemory where there is none.
Status send_side(const Dataset& data, const SharedSide& shared, SentSide* copies,
                 service::SideMessage* message, int* files, int* count);

void close_side(SentSide* copies);

}  // namespace gpujoin
