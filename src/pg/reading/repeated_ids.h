// Ids that no unique index vouches for.
#pragma once

#include "pg/reading/relation.h"

namespace gpujoin {

/// Whether two of the rows, which are in memory, have one id, and which. Takes up to 16 bytes a row
/// for as long as it looks, unless ids ascend. False too where that is more than `memory`.
bool find_repeated_id(const Dataset& points, std::uint64_t memory, std::int64_t* id);

}  // namespace gpujoin
