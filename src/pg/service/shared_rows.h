// The rows of a join's sides on their way to the service.
#pragma once

#include "pg/service/service_engine.h"

namespace gpujoin {

/// What a side's message names. Regions with a descriptor are copies, of this struct.
struct SentSide {
  SharedPoints points;
  service::SharedRegion keys;
  service::SharedRegion patches;
};

/// Fills the message of a side and appends its descriptors, which stay `shared`'s or `copies`'.
/// What is not in shared memory is copied there. kOutOfMemory where there is none.
Status send_side(const Dataset& data, const SharedSide& shared, SentSide* copies,
                 service::SideMessage* message, int* files, int* count);

void close_side(SentSide* copies);

/// Copies what Output::kSums asks for, with its columns, and appends the descriptor. kOutOfMemory
/// where there is none.
Status send_sums(const JoinRequest& request, service::SharedRegion* region, std::uint64_t* bytes,
                 int* files, int* count);

/// Copies the groups of so many left rows likewise, where there are several.
Status send_groups(const SumGroups& groups, std::uint64_t rows, service::SharedRegion* region,
                   int* files, int* count);

}  // namespace gpujoin
