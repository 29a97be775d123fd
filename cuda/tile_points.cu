#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/ordered_bits.h"
#include "cuda/tile_points.h"
#include "cuda/tuning.h"

namespace gpujoin::cuda {
namespace {

constexpr unsigned kRowBlocks = 512;  ///< blocks that share the rows of a side
constexpr unsigned kWarp = 32;

/// Of each column over finite points: sums relative to the first point, and the extent.
struct ColumnSums {
  double sum;
  double squares;
  unsigned long long low;  ///< ordered_bits()
  unsigned long long high;
};

template <class T>
const T* coordinates_of(const OrderedPoints& side) {
  return reinterpret_cast<const T*>(side.data->coordinates.data());
}

/// Each thread adds up one column over every rows_at_once-th point of its block's share. Blocks in
/// y take kBlockThreads columns each.
template <class T>
__global__ void column_sums_kernel(const T* coordinates, const std::uint32_t* order,
                                   std::uint32_t points, std::uint32_t dims, const T* origin,
                                   ColumnSums* sums) {
  const std::uint32_t first = blockIdx.y * kBlockThreads;
  const std::uint32_t columns = min(dims - first, kBlockThreads);
  const std::uint32_t rows_at_once = kBlockThreads / columns;
  const std::uint32_t d = first + threadIdx.x % columns;
  if (threadIdx.x / columns >= rows_at_once) return;
  double sum = 0, squares = 0, low = INFINITY, high = -INFINITY;
  for (std::uint32_t p = blockIdx.x * rows_at_once + threadIdx.x / columns; p < points;
       p += gridDim.x * rows_at_once) {
    const double x = coordinates[std::uint64_t{order[p]} * dims + d];
    const double difference = x - static_cast<double>(origin[d]);
    sum += difference;
    squares += difference * difference;
    low = fmin(low, x);
    high = fmax(high, x);
  }
  if (!(low <= high)) return;
  atomicAdd(&sums[d].sum, sum);
  atomicAdd(&sums[d].squares, squares);
  atomicMin(&sums[d].low, ordered_bits(low));
  atomicMax(&sums[d].high, ordered_bits(high));
}

template <class T>
void add_column_sums(const OrderedPoints& side, const T* origin, ColumnSums* sums,
                     cudaStream_t stream) {
  const std::uint32_t dims = side.data->dims;
  const dim3 blocks(kRowBlocks, (dims + kBlockThreads - 1) / kBlockThreads);
  column_sums_kernel<T><<<blocks, kBlockThreads, 0, stream>>>(
      coordinates_of<T>(side), side.index->order.data(), side.index->points, dims, origin, sums);
  check_launch("looking at columns");
}

/// One warp a point.
template <class T>
__global__ void quantize_kernel(const T* coordinates, const std::uint32_t* order,
                                std::uint32_t points, std::uint32_t padded_points,
                                std::uint32_t dims, std::uint32_t padded_dims,
                                const std::uint32_t* columns, const double* center, double scale,
                                ScreenRadius radius, __half* values, float* reject, float* accept) {
  const std::uint32_t p = (blockIdx.x * blockDim.x + threadIdx.x) / kWarp;
  const std::uint32_t lane = threadIdx.x % kWarp;
  if (p >= padded_points) return;
  const T* const point = p < points ? coordinates + std::uint64_t{order[p]} * dims : nullptr;
  __half* const out = values + std::uint64_t{p} * padded_dims;
  double norm_sq = 0, squares = 0;
  for (std::uint32_t k = lane; k < padded_dims; k += kWarp) {
    const double y = point != nullptr && k < dims
                         ? centred(static_cast<double>(point[columns[k]]), center[k], scale)
                         : 0;
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
  if (lane != 0) return;
  const ScreenThresholds thresholds = screen_thresholds(
      radius, norm_sq, quantization_error(squares, norm_sq), tensor_accumulation(padded_dims));
  reject[p] = point != nullptr ? thresholds.reject : HUGE_VALF;
  accept[p] = point != nullptr ? thresholds.accept : HUGE_VALF;
}

struct BoxColumns {
  std::uint32_t count;
  std::uint32_t column[kMaxGridDimensions];
};

/// One block of kScreenTile threads a tile.
template <class T>
__global__ void boxes_kernel(const T* coordinates, const std::uint32_t* order, std::uint32_t points,
                             std::uint32_t dims, BoxColumns columns, double* boxes) {
  constexpr unsigned kWarps = kScreenTile / kWarp;
  __shared__ double lows[kWarps], highs[kWarps];
  const std::uint32_t p = blockIdx.x * kScreenTile + threadIdx.x;
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

/// The columns' sums on the host.
std::vector<ColumnSums> column_sums(MemoryBudget& budget, const OrderedPoints* sides,
                                    int side_count, std::vector<double>& origin,
                                    cudaStream_t stream) {
  const DevicePoints& first = *sides[0].data;
  const std::uint32_t dims = first.dims;
  const std::size_t row_bytes = dims * scalar_bytes(first.scalar);
  std::vector<ColumnSums> sums(dims, {0, 0, ~0ull, 0});
  origin.assign(dims, 0);
  DeviceBuffer<ColumnSums> device_sums(budget, dims, stream);
  // Any finite point of either side serves as the origin.
  const OrderedPoints& side = sides[0].index->points > 0 || side_count == 1 ? sides[0] : sides[1];
  if (side.index->points == 0) return sums;
  std::uint32_t row = 0;
  copy_to_host(&row, side.index->order.data(), 1, stream);
  check(cudaStreamSynchronize(stream), "looking at columns");
  const unsigned char* const point = side.data->coordinates.data() + row * row_bytes;
  check(cudaMemcpyAsync(device_sums.data(), sums.data(), device_sums.bytes(),
                        cudaMemcpyHostToDevice, stream),
        "looking at columns");
  for (int s = 0; s < side_count; ++s) {
    if (sides[s].index->points == 0) continue;
    if (first.scalar == ScalarType::kFloat32)
      add_column_sums(sides[s], reinterpret_cast<const float*>(point), device_sums.data(), stream);
    else
      add_column_sums(sides[s], reinterpret_cast<const double*>(point), device_sums.data(), stream);
  }
  std::vector<unsigned char> bytes(row_bytes);
  copy_to_host(bytes.data(), point, row_bytes, stream);
  copy_to_host(sums.data(), device_sums.data(), dims, stream);
  check(cudaStreamSynchronize(stream), "looking at columns");
  const Dataset one{bytes.data(), nullptr, 1, dims, first.scalar};
  for (std::uint32_t d = 0; d < dims; ++d) origin[d] = coordinate(one, 0, d);
  return sums;
}

}  // namespace

Quantization choose_quantization(MemoryBudget& budget, const OrderedPoints* sides, int side_count,
                                 double radius, bool decides, bool reorder, cudaStream_t stream) {
  Quantization how{};
  how.dims = sides[0].data->dims;
  how.padded_dims = (how.dims + 15) / 16 * 16;
  std::vector<double> origin;
  const std::vector<ColumnSums> sums = column_sums(budget, sides, side_count, origin, stream);
  double points = 0;
  for (int s = 0; s < side_count; ++s) points += sides[s].index->points;

  std::vector<double> center(how.dims), variance(how.dims);
  double half = 0, largest = 0;  // see centred_scale()
  for (std::uint32_t d = 0; d < how.dims && points > 0; ++d) {
    const double low = from_ordered_bits(sums[d].low), high = from_ordered_bits(sums[d].high);
    const double mean = sums[d].sum / points;
    center[d] = origin[d] + mean;
    if (!(center[d] >= low && center[d] <= high)) center[d] = low / 2 + high / 2;
    const double spread = sums[d].squares / points - mean * mean;
    variance[d] = std::isfinite(spread) ? spread : high / 2 - low / 2;
    half = std::max({half, high / 2 - center[d] / 2, center[d] / 2 - low / 2});
    largest = std::max({largest, std::fabs(low), std::fabs(high)});
  }
  how.scale = centred_scale(half, largest);
  how.radius = make_screen_radius(radius, how.dims, how.scale);
  if (!decides) how.radius.accept = -1;

  std::vector<std::uint32_t> order(how.dims);
  std::iota(order.begin(), order.end(), 0u);
  if (reorder)
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return variance[a] > variance[b]; });
  std::vector<double> ordered_center(how.dims);
  for (std::uint32_t k = 0; k < how.dims; ++k) ordered_center[k] = center[order[k]];
  how.order = DeviceBuffer<std::uint32_t>(budget, how.dims, stream);
  how.center = DeviceBuffer<double>(budget, how.dims, stream);
  check(cudaMemcpyAsync(how.order.data(), order.data(), how.order.bytes(), cudaMemcpyHostToDevice,
                        stream),
        "copying the order of columns");
  check(cudaMemcpyAsync(how.center.data(), ordered_center.data(), how.center.bytes(),
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
