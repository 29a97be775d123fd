// Intervals of both rows that have to overlap, as a key.
#pragma once

#include "pg/executor/key_numbers.h"

namespace gpujoin {

/// Computes both sides' ends, in the column `number` and the one after it. The band has the key's
/// bounds.
void number_intervals(JoinNode* node, const JoinKey& key, const Band& band, std::uint32_t number);

}  // namespace gpujoin
