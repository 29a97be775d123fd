// One side of a tile join on the device: its points in the order of a space-filling curve, rounded
// to half precision, with the thresholds of the screen and the boxes of tiles.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "core/tile_screen.h"
#include "cuda/grid/grid_index.h"
#include "engine/strategy/screen_frame.h"

namespace gpujoin::cuda {

/// How points are rounded, the same for both sides.
struct Quantization {
  std::uint32_t dims;
  std::uint32_t padded_dims;          ///< a multiple of 16
  double scale;                       ///< a power of two
  ScreenRadius radius;                ///< in scaled units
  DeviceBuffer<std::uint32_t> order;  ///< [dims] column -> column of the data
  DeviceBuffer<double> center;        ///< [dims] in that order
};

/// Points are named by position, as in DeviceIndex; rows beyond the last point fill up its tile and
/// pass no threshold.
struct TilePoints {
  std::uint32_t points = 0;
  std::uint32_t tiles = 0;
  DeviceBuffer<__half> values;  ///< [tiles * kScreenTile][padded_dims]
  DeviceBuffer<float> reject;   ///< [tiles * kScreenTile] ScreenThresholds
  DeviceBuffer<float> accept;   ///< likewise
  DeviceBuffer<double> boxes;   ///< [tiles][2][indexed columns]: lows, then highs
};

/// One side's data as it was uploaded and its order.
struct OrderedPoints {
  const DevicePoints* data;
  const DeviceIndex* index;
};

/// L2 distances, of the indexed data, that decide pairs.
struct TileRadii {
  double eps;       ///< no pair beyond it is wanted
  double sure_eps;  ///< every pair within it is; negative: none surely is
};

/// How to round points in a frame that the host has chosen. Waits for the device. Throws CudaError,
/// MemoryLimitExceeded or std::bad_alloc.
Quantization make_quantization(MemoryBudget& budget, const ScreenFrame& frame,
                               const TileRadii& radii, cudaStream_t stream);

/// Rounds the points of a side. Asynchronous.
TilePoints quantize(MemoryBudget& budget, const OrderedPoints& side, const Quantization& how,
                    const Strategy& strategy, cudaStream_t stream);

}  // namespace gpujoin::cuda
