// Whether a batch may be believed. An engine is another library, and behind the service another
// process: what a batch names is checked once, when the batch arrives, before memory is indexed.
#pragma once

#include "engine/request/result.h"

namespace gpujoin {

/// Which ids a side's rows have.
struct IdRange {
  std::int64_t end;  ///< ids are from 0 to end - 1; 0: any
  /// The largest value of an id's lower 16 bits; 0: any. Slots without a row have the id 0.
  std::uint16_t most_offset;
};

/// Returns what is wrong with a batch of this output; null if all that it names is there. `groups`
/// is the number of groups if the rows are groups, which have no ids; 0 if the rows are left
/// points.
const char* problem_of_batch(const ResultBatch& batch, Output::Kind output, std::uint64_t groups);

/// Whether all ids lie in the range.
bool are_in_range(const std::int64_t* ids, std::uint64_t count, const IdRange& range);

}  // namespace gpujoin
