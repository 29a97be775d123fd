#include "cuda/device/kernel_helpers.cuh"
#include "cuda/device/sort.h"
#include "cuda/device/tuning.h"
#include "cuda/grid/grid_index.h"

namespace gpujoin::cuda {
namespace {

template <class T>
__device__ bool is_finite_row(const T* row, std::uint32_t dims) {
  for (std::uint32_t d = 0; d < dims; ++d)
    if (!isfinite(row[d])) return false;
  return true;
}

/// What an index is built from: `dims` columns row-major, then distances column by column.
template <class T>
struct Source {
  const T* coordinates;
  const T* distances;
  std::uint64_t rows;
  std::uint32_t dims;
  std::uint32_t reference_points;

  __device__ const T* point(std::uint64_t row) const { return coordinates + row * dims; }
  __device__ T value(std::uint64_t row, std::uint32_t column) const {
    return column < dims ? point(row)[column] : distances[(column - dims) * rows + row];
  }
};

/// One point and, by blockIdx.y, one reference point a thread.
template <Metric M, class T>
__global__ void distances_kernel(const T* coordinates, std::uint64_t rows, std::uint32_t dims,
                                 const double* references, ReferenceFrame frame, T* distances) {
  const std::uint64_t row = global_thread();
  if (row >= rows) return;
  distances[blockIdx.y * rows + row] = static_cast<T>(reference_distance<M>(
      coordinates + row * dims, references + std::uint64_t{blockIdx.y} * dims, dims, frame));
}

template <class T>
__global__ void codes_kernel(Source<T> source, SortLayout layout, std::uint64_t* codes,
                             std::uint32_t* order, unsigned* finite_points) {
  const std::uint64_t row = global_thread();
  bool finite = false;
  if (row < source.rows) {
    finite = is_finite_row(source.point(row), source.dims);
    std::uint64_t code = kNotFinite;
    if (finite) {
      std::uint32_t cell[kMaxGridDimensions];
      for (std::uint32_t d = 0; d < layout.grid.dims; ++d)
        cell[d] = cell_coordinate(layout.grid, d, source.value(row, layout.grid.column[d]));
      code =
          sort_code(layout, cell,
                    layout.sort_column == kNoColumn ? 0.0 : source.value(row, layout.sort_column));
    }
    codes[row] = code;
    order[row] = static_cast<std::uint32_t>(row);
  }
  const unsigned count = __syncthreads_count(finite);
  if (threadIdx.x == 0 && count > 0) atomicAdd(finite_points, count);
}

template <class T>
__global__ void gather_columns_kernel(Source<T> source, const std::uint32_t* order, T* columns) {
  const std::uint64_t position = global_thread();
  if (position >= source.rows) return;
  const T* const point = source.point(order[position]);
  columns += position;
  for (std::uint32_t d = 0; d < source.dims; ++d) columns[d * source.rows] = point[d];
  columns += source.dims * source.rows;
  for (std::uint32_t w = 0; w < source.reference_points; ++w)
    columns[w * source.rows] = source.distances[w * source.rows + order[position]];
}

template <class T>
__global__ void gather_kernel(const T* source, const std::uint32_t* order, std::uint32_t rows,
                              T* gathered) {
  const std::uint64_t position = global_thread();
  if (position < rows)
    gathered[position] =
        source != nullptr ? source[order[position]] : static_cast<T>(order[position]);
}

template <class T>
Source<T> source_of(const DevicePoints& points) {
  return {static_cast<const T*>(points.data()), reinterpret_cast<const T*>(points.distances.data()),
          points.rows, points.dims, points.reference_points};
}

template <Metric M, class T>
void launch_distances(const DevicePoints& points, const double* device_references,
                      const ReferenceFrame& frame, cudaStream_t stream) {
  const dim3 blocks(blocks_for(points.rows), points.reference_points);
  distances_kernel<M, T><<<blocks, kBlockThreads, 0, stream>>>(
      static_cast<const T*>(points.data()), points.rows, points.dims, device_references, frame,
      reinterpret_cast<T*>(points.distances.data()));
}

template <Metric M>
void launch_distances(const DevicePoints& points, const double* device_references,
                      const ReferenceFrame& frame, cudaStream_t stream) {
  if (points.scalar == ScalarType::kFloat32)
    launch_distances<M, float>(points, device_references, frame, stream);
  else
    launch_distances<M, double>(points, device_references, frame, stream);
}

template <class T>
void sort(const DevicePoints& points, const SortLayout& layout, DeviceIndex& index,
          DeviceBuffer<std::uint64_t>& codes, DeviceBuffer<std::uint32_t>& order,
          unsigned* finite_points, MemoryBudget& budget, cudaStream_t stream) {
  const std::uint32_t rows = index.rows;
  codes_kernel<T><<<blocks_for(rows), kBlockThreads, 0, stream>>>(
      source_of<T>(points), layout, codes.data(), order.data(), finite_points);
  check_launch("computing cells");
  // kNotFinite has every bit set, so the bits that codes use, and one more, sort it last.
  const int bits = static_cast<int>(layout.grid.dims * layout.grid.bits + layout.value_bits) + 1;
  sort_pairs<std::uint32_t>(
      budget, {codes.data(), index.codes.data(), order.data(), index.order.data(), rows}, {0, bits},
      stream);
}

template <class T>
void gather_columns(const DevicePoints& points, const DeviceIndex& index, cudaStream_t stream) {
  gather_columns_kernel<T><<<blocks_for(index.rows), kBlockThreads, 0, stream>>>(
      source_of<T>(points), index.order.data(), reinterpret_cast<T*>(index.columns.data()));
  check_launch("ordering points");
}

}  // namespace

void add_reference_distances(MemoryBudget& budget, DevicePoints& points,
                             const ReferencePoints& references, cudaStream_t stream) {
  if (references.count == 0) return;
  points.reference_points = references.count;
  points.distances = DeviceBuffer<unsigned char>(
      budget, references.count * points.rows * scalar_bytes(points.scalar), stream);
  DeviceBuffer<double> coordinates(budget, references.coordinates.size(), stream);
  check(cudaMemcpyAsync(coordinates.data(), references.coordinates.data(), coordinates.bytes(),
                        cudaMemcpyHostToDevice, stream),
        "copying reference points to the device");
  const auto launch = references.metric == Metric::kL1     ? launch_distances<Metric::kL1>
                      : references.metric == Metric::kLInf ? launch_distances<Metric::kLInf>
                                                           : launch_distances<Metric::kL2>;
  launch(points, coordinates.data(), references.frame, stream);
  check_launch("measuring distances to reference points");
}

DeviceIndex sort_points(MemoryBudget& budget, const DevicePoints& points, const SortLayout& layout,
                        unsigned* device_finite_points, cudaStream_t stream) {
  DeviceIndex index;
  index.rows = static_cast<std::uint32_t>(points.rows);
  index.codes = DeviceBuffer<std::uint64_t>(budget, index.rows, stream);
  index.order = DeviceBuffer<std::uint32_t>(budget, index.rows, stream);
  DeviceBuffer<std::uint64_t> codes(budget, index.rows, stream);
  DeviceBuffer<std::uint32_t> order(budget, index.rows, stream);
  if (points.scalar == ScalarType::kFloat32)
    sort<float>(points, layout, index, codes, order, device_finite_points, budget, stream);
  else
    sort<double>(points, layout, index, codes, order, device_finite_points, budget, stream);
  return index;
}

void order_columns(MemoryBudget& budget, const DevicePoints& points, DeviceIndex& index,
                   cudaStream_t stream) {
  index.columns = DeviceBuffer<unsigned char>(
      budget, points.coordinates->size() + points.distances.size(), stream);
  if (points.scalar == ScalarType::kFloat32)
    gather_columns<float>(points, index, stream);
  else
    gather_columns<double>(points, index, stream);
}

void gather_ids(const DeviceIndex& index, const std::int64_t* device_source,
                std::int64_t* device_ids, cudaStream_t stream) {
  gather_kernel<<<blocks_for(index.rows), kBlockThreads, 0, stream>>>(
      device_source, index.order.data(), index.rows, device_ids);
  check_launch("ordering ids");
}

void gather_scores(const DeviceIndex& index, const double* device_source, double* device_scores,
                   cudaStream_t stream) {
  gather_kernel<<<blocks_for(index.rows), kBlockThreads, 0, stream>>>(
      device_source, index.order.data(), index.rows, device_scores);
  check_launch("ordering scores");
}

}  // namespace gpujoin::cuda
