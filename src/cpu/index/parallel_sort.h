// Sorting points and boxes on their way into an index, on all workers.
#pragma once

#include <cstdint>

#include "engine/request/buffer.h"
#include "engine/worker_pool.h"
#include "hwy/base.h"

namespace gpujoin::cpu {

/// A point or a box by its code in `hi` and its row in `lo`.
using SortItem = hwy::uint128_t;

/// Sorts by code, then by row; no two items have the same row. Takes as much memory again as the
/// items, and two bytes for each. Throws MemoryLimitExceeded, std::bad_alloc, Stopped.
void parallel_sort(WorkerPool& pool, MemoryBudget& budget, Buffer<SortItem>& items);

}  // namespace gpujoin::cpu
