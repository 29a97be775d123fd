// Whether the tensor cores at hand are as exact as core/tile_screen.h takes them to be: what is
// known of them was measured, on the chips that there were.
#pragma once

#include <cuda_runtime.h>

namespace gpujoin::cuda {

/// Sums some hard dot products on the current device and compares them with exact sums; once a
/// process and device, some milliseconds. Waits for the device. Throws CudaError or std::bad_alloc.
bool tensor_sums_are_close(cudaStream_t stream);

}  // namespace gpujoin::cuda
