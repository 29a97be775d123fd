// Directions of points on the device, which joins by cosine distance are screened by; see
// core/cosine.h.
#pragma once

#include "cuda/grid/grid_index.h"

namespace gpujoin::cuda {

/// The directions of all rows, in single precision; rows that have none are NaN. Sets
/// *device_extreme to 1 where a row is extreme. Asynchronous.
DevicePoints directions_of(MemoryBudget& budget, const DevicePoints& points,
                           unsigned* device_extreme, cudaStream_t stream);

}  // namespace gpujoin::cuda
