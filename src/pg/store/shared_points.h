// Points in memory that gpujoin_service can map, so that nothing is copied on their way to it, and
// that parallel workers map to write them.
#pragma once

#include "pg/compat.h"
#include "service/protocol/shared_region.h"

namespace gpujoin {

/// The arrays of one side, each in a region of its own. Rows lie one after the other, without gaps
/// between chunks.
struct SharedPoints {
  service::SharedRegion coordinates;  ///< [rows][dims]
  service::SharedRegion ids;          ///< [rows]
  service::SharedRegion scores;       ///< [rows], or none
};

/// Makes room for none; the regions are closed with the context at the latest. They may grow to
/// `most` bytes in all. Null where the system has no descriptors.
SharedPoints* create_shared_points(MemoryContext context, std::uint64_t most, bool scored);

/// Gives a region room for so many bytes; false where the system has no memory for it.
bool grow_shared(service::SharedRegion* region, std::uint64_t bytes);

void close_shared_points(SharedPoints* points);

}  // namespace gpujoin
