#include <algorithm>
#include <cmath>
#include <vector>

#include "cuda/device/kernel_helpers.cuh"
#include "cuda/device/sort.h"
#include "cuda/nearest/curve_points.h"
#include "engine/strategy/outliers.h"
#include "engine/strategy/sample.h"

namespace gpujoin::cuda {
namespace {

template <class T>
__global__ void keys_kernel(const T* coordinates, std::uint64_t rows, std::uint32_t dims,
                            CurveFrame frame, std::uint64_t* highs, std::uint64_t* lows,
                            std::uint32_t* order, unsigned* finite_points) {
  const std::uint64_t row = global_thread();
  bool finite = false;
  if (row < rows) {
    const T* const point = coordinates + row * dims;
    finite = true;
    for (std::uint32_t d = 0; d < dims; ++d) finite = finite && isfinite(point[d]);
    CurveKey key = kNoCurveKey;
    if (finite) {
      std::uint32_t cell[kMostCurveColumns];
      for (std::uint32_t c = 0; c < frame.columns; ++c)
        cell[c] = curve_cell(frame, c, static_cast<double>(point[c]));
      key = curve_key(frame, cell);
    }
    highs[row] = key.high;
    lows[row] = key.low;
    order[row] = static_cast<std::uint32_t>(row);
  }
  const unsigned count = __syncthreads_count(finite);
  if (threadIdx.x == 0 && count > 0) atomicAdd(finite_points, count);
}

__global__ void gather_keys_kernel(const std::uint64_t* keys, const std::uint32_t* order,
                                   std::uint64_t rows, std::uint64_t* gathered) {
  const std::uint64_t position = global_thread();
  if (position < rows) gathered[position] = keys[order[position]];
}

template <class T>
__global__ void coordinates_kernel(const T* source, const std::uint32_t* order,
                                   std::uint64_t numbers, std::uint32_t dims, std::uint32_t stride,
                                   double* coordinates) {
  const std::uint64_t i = global_thread();
  if (i >= numbers) return;
  const std::uint64_t position = i / stride;
  const auto d = static_cast<std::uint32_t>(i % stride);
  coordinates[i] =
      d < dims ? static_cast<double>(source[std::uint64_t{order[position]} * dims + d]) : 0;
}

/// One leaf and column a thread.
__global__ void leaves_kernel(BoxTree tree, float* boxes) {
  const std::uint64_t i = global_thread();
  const auto leaf = static_cast<std::uint32_t>(i / tree.stride);
  const auto d = static_cast<std::uint32_t>(i % tree.stride);
  if (leaf >= tree.leaves()) return;
  double low = INFINITY, high = -INFINITY;
  for (std::uint32_t p = tree.begin(leaf), end = tree.begin(leaf + 1); p < end; ++p) {
    const double x = tree.point(p)[d];
    low = fmin(low, x);
    high = fmax(high, x);
  }
  float* const box = boxes + (std::uint64_t{tree.leaves()} + leaf) * 2 * tree.stride;
  box[d] = __double2float_rd(low);
  box[tree.stride + d] = __double2float_ru(high);
}

/// One node of a level and column a thread.
__global__ void nodes_kernel(std::uint32_t first, std::uint32_t stride, float* boxes) {
  const std::uint64_t i = global_thread();
  if (i >= std::uint64_t{first} * stride)
    return;  // a level has as many nodes as its first's number
  const std::uint64_t node = first + i / stride;
  const auto d = static_cast<std::uint32_t>(i % stride);
  float* const box = boxes + node * 2 * stride;
  const float* const children = boxes + 2 * node * 2 * stride;
  box[d] = fminf(children[d], children[2 * stride + d]);
  box[stride + d] = fmaxf(children[stride + d], children[3 * stride + d]);
}

/// The finite values of a column in the sampled rows.
std::vector<double> sampled_values(const Dataset& data, std::uint32_t column) {
  std::vector<double> values;
  for (const std::uint64_t row : sample_rows(data.rows)) {
    const double x = coordinate(data, row, column);
    if (std::isfinite(x)) values.push_back(x);
  }
  return values;
}

}  // namespace

CurveFrame choose_curve_frame(const JoinRequest& request) {
  const std::uint32_t dims = request.left().dims;
  const std::uint32_t columns = std::min(dims, kMostCurveColumns);
  double low[kMostCurveColumns], high[kMostCurveColumns];
  for (std::uint32_t c = 0; c < columns; ++c) {
    low[c] = -1;
    high[c] = 1;
    if (request.metric() == Metric::kCosine) continue;  // of directions
    std::vector<double> left = sampled_values(request.left(), c);
    const std::vector<double> right = sampled_values(request.right(), c);
    const Extent range = ordinary_range(left, &right);
    left.insert(left.end(), right.begin(), right.end());
    if (left.empty()) continue;
    low[c] = std::isfinite(range.low) ? range.low : *std::min_element(left.begin(), left.end());
    high[c] = std::isfinite(range.high) ? range.high : *std::max_element(left.begin(), left.end());
  }
  return make_curve_frame(low, high, dims);
}

CurvePoints sort_by_curve(MemoryBudget& budget, const DevicePoints& points, const CurveFrame& frame,
                          unsigned* finite_points, cudaStream_t stream) {
  const std::uint64_t rows = points.rows;
  CurvePoints sorted;
  sorted.rows = static_cast<std::uint32_t>(rows);
  DeviceBuffer<std::uint64_t> highs(budget, rows, stream), lows(budget, rows, stream),
      other_keys(budget, rows, stream);
  DeviceBuffer<std::uint32_t> order(budget, rows, stream), other_order(budget, rows, stream);
  const auto find_keys = [&](const auto* coordinates) {
    keys_kernel<<<blocks_for(rows), kBlockThreads, 0, stream>>>(coordinates, rows, points.dims,
                                                                frame, highs.data(), lows.data(),
                                                                order.data(), finite_points);
  };
  if (points.scalar == ScalarType::kFloat32)
    find_keys(static_cast<const float*>(points.data()));
  else
    find_keys(static_cast<const double*>(points.data()));
  check_launch("finding places on a curve");
  sort_in_place(lows, other_keys, order, other_order, budget, stream);
  if (frame.columns * frame.bits > 64) {
    gather_keys_kernel<<<blocks_for(rows), kBlockThreads, 0, stream>>>(highs.data(), order.data(),
                                                                       rows, lows.data());
    check_launch("sorting points");
    sort_in_place(lows, other_keys, order, other_order, budget, stream);
  }
  sorted.order = std::move(order);
  return sorted;
}

void order_coordinates(MemoryBudget& budget, const DevicePoints& data, std::uint32_t points,
                       std::uint32_t stride, CurvePoints& ordered, cudaStream_t stream) {
  const std::uint64_t numbers = std::uint64_t{points} * stride;
  ordered.coordinates = DeviceBuffer<double>(budget, numbers, stream);
  if (numbers == 0) return;
  const auto gather = [&](const auto* source) {
    coordinates_kernel<<<blocks_for(numbers), kBlockThreads, 0, stream>>>(
        source, ordered.order.data(), numbers, data.dims, stride, ordered.coordinates.data());
  };
  if (data.scalar == ScalarType::kFloat32)
    gather(static_cast<const float*>(data.data()));
  else
    gather(static_cast<const double*>(data.data()));
  check_launch("ordering points");
}

DeviceBuffer<float> find_boxes(MemoryBudget& budget, const BoxTree& tree, cudaStream_t stream) {
  const std::uint64_t nodes = std::uint64_t{2} << tree.levels;
  DeviceBuffer<float> boxes(budget, nodes * 2 * tree.stride, stream);
  const std::uint64_t leaves = std::uint64_t{tree.leaves()} * tree.stride;
  leaves_kernel<<<blocks_for(leaves), kBlockThreads, 0, stream>>>(tree, boxes.data());
  for (std::uint32_t level = tree.levels; level-- > 0;) {
    const std::uint32_t first = 1u << level;
    nodes_kernel<<<blocks_for(std::uint64_t{first} * tree.stride), kBlockThreads, 0, stream>>>(
        first, tree.stride, boxes.data());
  }
  check_launch("finding boxes");
  return boxes;
}

}  // namespace gpujoin::cuda
