// The directions of a dataset's points, which joins by cosine distance index instead of the points.
#pragma once

#include "engine/request/buffer.h"
#include "engine/strategy/directions.h"
#include "engine/worker_pool.h"

namespace gpujoin::cpu {

struct Directions {
  Buffer<float> coordinates;
  bool extreme = false;  ///< a row is, see is_extreme() in core/cosine.h

  /// The directions as a dataset, under the ids of the points.
  Dataset view(const Dataset& points) const;
};

/// Throws MemoryLimitExceeded, std::bad_alloc, Stopped.
Directions find_directions(WorkerPool& pool, MemoryBudget& budget, const Dataset& points);

}  // namespace gpujoin::cpu
