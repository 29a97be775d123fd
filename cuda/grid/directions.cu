#include "core/cosine.h"
#include "cuda/device/kernel_helpers.cuh"
#include "cuda/grid/directions.h"

namespace gpujoin::cuda {
namespace {

/// One thread a row: the norm is a sum in column order.
template <class T>
__global__ void directions_kernel(const T* coordinates, std::uint64_t rows, std::uint32_t dims,
                                  float* directions, unsigned* extreme) {
  const std::uint64_t row = global_thread();
  if (row < rows && write_direction(coordinates + row * dims, dims, directions + row * dims))
    *extreme = 1;
}

}  // namespace

DevicePoints directions_of(MemoryBudget& budget, const DevicePoints& points,
                           unsigned* device_extreme, cudaStream_t stream) {
  DevicePoints directions;
  directions.rows = points.rows;
  directions.dims = points.dims;
  directions.scalar = ScalarType::kFloat32;
  directions.coordinates = std::make_shared<const DeviceBuffer<unsigned char>>(
      budget, points.rows * points.dims * sizeof(float), stream);
  float* const out = reinterpret_cast<float*>(directions.coordinates->data());
  const unsigned blocks = blocks_for(points.rows);
  if (points.scalar == ScalarType::kFloat32)
    directions_kernel<<<blocks, kBlockThreads, 0, stream>>>(
        static_cast<const float*>(points.data()), points.rows, points.dims, out, device_extreme);
  else
    directions_kernel<<<blocks, kBlockThreads, 0, stream>>>(
        static_cast<const double*>(points.data()), points.rows, points.dims, out, device_extreme);
  check_launch("finding directions");
  return directions;
}

}  // namespace gpujoin::cuda
