// Whether the tensor cores at hand are as exact as core/tile_screen.h takes them to be: [Fasi]
// measured how tensor cores round, on the chips of the day.
#pragma once

#include "cuda/device/device_context.h"

namespace gpujoin::cuda {

/// Sums some hard dot products on the device and compares them with exact sums; once a process and
/// device, some milliseconds. Waits for the device. Throws CudaError or std::bad_alloc.
bool tensor_sums_are_close(DeviceContext& context, cudaStream_t stream);

}  // namespace gpujoin::cuda
