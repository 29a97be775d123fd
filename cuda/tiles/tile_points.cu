#include <algorithm>
#include <vector>

#include "cuda/device/kernel_helpers.cuh"
#include "cuda/device/tuning.h"
#include "cuda/tiles/tile_points.h"

namespace gpujoin::cuda {
namespace {

constexpr unsigned kWarp = 32;

template <class T>
const T* coordinates_of(const OrderedPoints& side) {
  return static_cast<const T*>(side.data->data());
}

/// One warp for each point.
template <class T>
__global__ void quantize_kernel(const T* coordinates, const std::uint32_t* order,
                                std::uint32_t points, std::uint32_t padded_points,
                                std::uint32_t dims, std::uint32_t padded_dims,
                                const std::uint32_t* columns, const double* center, double scale,
                                ScreenRadius radius, __half* values, float* reject, float* accept) {
  const auto p = static_cast<std::uint32_t>(global_thread() / kWarp);
  const std::uint32_t lane = threadIdx.x % kWarp;
  if (p >= padded_points) return;
  const T* const point = p < points ? coordinates + std::uint64_t{order[p]} * dims : nullptr;
  __half* const out = values + std::uint64_t{p} * padded_dims;
  double norm_sq = 0, squares = 0;
  bool cut = false;
  for (std::uint32_t k = lane; k < padded_dims; k += kWarp) {
    const double whole = point != nullptr && k < dims
                             ? centred(static_cast<double>(point[columns[k]]), center[k], scale)
                             : 0;
    const double y = cut_to_screen(whole);
    cut |= y != whole;
    const __half rounded = __double2half(y);
    const auto value = static_cast<double>(__half2float(rounded));
    out[k] = rounded;
    norm_sq += value * value;
    squares += (y - value) * (y - value);
  }
  for (unsigned offset = kWarp / 2; offset > 0; offset /= 2) {
    norm_sq += __shfl_xor_sync(~0u, norm_sq, offset);
    squares += __shfl_xor_sync(~0u, squares, offset);
  }
  cut = __any_sync(~0u, cut);
  if (lane != 0) return;
  const ScreenThresholds thresholds =
      screen_thresholds(radius_of_point(radius, cut), norm_sq, quantization_error(squares, norm_sq),
                        tensor_accumulation(padded_dims));
  reject[p] = point != nullptr ? thresholds.reject : HUGE_VALF;
  accept[p] = point != nullptr ? thresholds.accept : HUGE_VALF;
}

struct BoxColumns {
  std::uint32_t count;
  std::uint32_t column[kMaxGridDimensions];
};

/// One thread block of kScreenTile threads for each tile.
template <class T>
__global__ void boxes_kernel(const T* coordinates, const std::uint32_t* order, std::uint32_t points,
                             std::uint32_t dims, BoxColumns columns, double* boxes) {
  constexpr unsigned kWarps = kScreenTile / kWarp;
  __shared__ double lows[kWarps], highs[kWarps];
  const std::uint64_t p = global_thread();
  double* const box = boxes + std::uint64_t{blockIdx.x} * 2 * columns.count;
  for (std::uint32_t c = 0; c < columns.count; ++c) {
    double low = INFINITY, high = -INFINITY;
    if (p < points) low = high = coordinates[std::uint64_t{order[p]} * dims + columns.column[c]];
    for (unsigned offset = kWarp / 2; offset > 0; offset /= 2) {
      low = fmin(low, __shfl_xor_sync(~0u, low, offset));
      high = fmax(high, __shfl_xor_sync(~0u, high, offset));
    }
    if (threadIdx.x % kWarp == 0) {
      lows[threadIdx.x / kWarp] = low;
      highs[threadIdx.x / kWarp] = high;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      for (unsigned warp = 1; warp < kWarps; ++warp) {
        low = fmin(low, lows[warp]);
        high = fmax(high, highs[warp]);
      }
      box[c] = low;
      box[columns.count + c] = high;
    }
    __syncthreads();
  }
}

template <class T>
void quantize_as(const OrderedPoints& side, const Quantization& how, const BoxColumns& columns,
                 TilePoints& tiles, cudaStream_t stream) {
  const std::uint32_t padded_points = tiles.tiles * kScreenTile;
  quantize_kernel<T><<<padded_points / (kBlockThreads / kWarp), kBlockThreads, 0, stream>>>(
      coordinates_of<T>(side), side.index->order.data(), tiles.points, padded_points, how.dims,
      how.padded_dims, how.order.data(), how.center.data(), how.scale, how.radius,
      tiles.values.data(), tiles.reject.data(), tiles.accept.data());
  check_launch("rounding points");
  if (columns.count == 0) return;
  boxes_kernel<T><<<tiles.tiles, kScreenTile, 0, stream>>>(coordinates_of<T>(side),
                                                           side.index->order.data(), tiles.points,
                                                           how.dims, columns, tiles.boxes.data());
  check_launch("finding boxes");
}

}  // namespace

Quantization make_quantization(MemoryBudget& budget, const ScreenFrame& frame,
                               const TileRadii& radii, cudaStream_t stream) {
  Quantization how{};
  how.dims = static_cast<std::uint32_t>(frame.order.size());
  how.padded_dims = (how.dims + 15) / 16 * 16;
  how.scale = frame.scale;
  how.radius = make_screen_radius(radii.eps, radii.sure_eps, how.dims, how.scale);
  std::vector<double> center(how.dims);
  for (std::uint32_t k = 0; k < how.dims; ++k) center[k] = frame.center[frame.order[k]];
  how.order = DeviceBuffer<std::uint32_t>(budget, how.dims, stream);
  how.center = DeviceBuffer<double>(budget, how.dims, stream);
  check(cudaMemcpyAsync(how.order.data(), frame.order.data(), how.order.bytes(),
                        cudaMemcpyHostToDevice, stream),
        "copying the order of columns");
  check(cudaMemcpyAsync(how.center.data(), center.data(), how.center.bytes(),
                        cudaMemcpyHostToDevice, stream),
        "copying the centre");
  check(cudaStreamSynchronize(stream), "copying the centre");
  return how;
}

TilePoints quantize(MemoryBudget& budget, const OrderedPoints& side, const Quantization& how,
                    const Strategy& strategy, cudaStream_t stream) {
  TilePoints tiles;
  tiles.points = side.index->points;
  tiles.tiles = (tiles.points + kScreenTile - 1) / kScreenTile;
  if (tiles.tiles == 0) return tiles;
  BoxColumns columns{strategy.grid_dims, {}};
  std::copy_n(strategy.grid_columns, strategy.grid_dims, columns.column);
  const std::size_t padded_points = std::size_t{tiles.tiles} * kScreenTile;
  tiles.values = DeviceBuffer<__half>(budget, padded_points * how.padded_dims, stream);
  tiles.reject = DeviceBuffer<float>(budget, padded_points, stream);
  tiles.accept = DeviceBuffer<float>(budget, padded_points, stream);
  tiles.boxes = DeviceBuffer<double>(budget, std::size_t{tiles.tiles} * 2 * columns.count, stream);
  if (side.data->scalar == ScalarType::kFloat32)
    quantize_as<float>(side, how, columns, tiles, stream);
  else
    quantize_as<double>(side, how, columns, tiles, stream);
  return tiles;
}

}  // namespace gpujoin::cuda
