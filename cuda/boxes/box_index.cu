#include "core/ordered_bits.h"
#include "cuda/boxes/box_index.h"
#include "cuda/device/kernel_helpers.cuh"
#include "cuda/device/sort.h"
#include "cuda/device/tuning.h"

namespace gpujoin::cuda {
namespace {

/// Threads that write the cells of a box together: a box has kMostCellsOfBox cells at most.
constexpr std::uint32_t kWritersOfBox = 8;

template <class T>
__device__ std::uint64_t code_of_box(const BoxOrder& order, const T* box, std::uint32_t dims) {
  switch (order.method) {
    case BoxMethod::kLayeredGrid:
      return curve_code(order.grid, box, dims);
    case BoxMethod::kSortSweep:
      return ordered_bits(static_cast<double>(box[order.dimension]));
    default:
      return 0;
  }
}

template <class T>
__global__ void codes_kernel(BoxRows rows, BoxOrder order, std::uint64_t* codes,
                             std::uint32_t* dataset_rows, unsigned* boxes) {
  const std::uint64_t i = global_thread();
  bool found = false;
  if (i < rows.rows) {
    const T* const box = static_cast<const T*>(rows.numbers) + i * 2 * rows.dims;
    found = is_box(box, rows.dims);
    codes[i] = found ? code_of_box(order, box, rows.dims) : kNotFinite;
    dataset_rows[i] = rows.first_row + static_cast<std::uint32_t>(i);
  }
  const unsigned count = __syncthreads_count(found);
  if (threadIdx.x == 0 && count > 0) atomicAdd(boxes, count);
}

template <class T>
__global__ void gather_kernel(BoxRows rows, const std::uint32_t* order, T* columns) {
  const std::uint64_t i = global_thread();
  if (i >= rows.rows) return;
  const T* const box = static_cast<const T*>(rows.numbers) +
                       std::uint64_t{order[i] - rows.first_row} * 2 * rows.dims;
  for (std::uint32_t d = 0; d < 2 * rows.dims; ++d)
    columns[std::uint64_t{d} * rows.rows + i] = box[d];
}

/// Sets a part's bit in a record, unless it is set: most boxes share their cells with other boxes
/// of their part.
__device__ void set_part(unsigned long long* record, std::uint32_t part) {
  const auto set = [](unsigned long long* word, std::uint32_t bit) {
    const unsigned long long mask = 1ull << bit;
    if ((*static_cast<volatile unsigned long long*>(word) & mask) == 0) atomicOr(word, mask);
  };
  set(record + 1 + part / kWordBits, part % kWordBits);
  set(record, part / kWordBits);
}

template <class T>
__global__ void table_kernel(BoxesView boxes, std::uint32_t dims, LayeredGrid grid,
                             unsigned long long* table) {
  const std::uint64_t thread = global_thread();
  const std::uint64_t position = thread / kWritersOfBox;
  if (position >= *boxes.boxes) return;
  T box[2 * kMaxBoxDimensions];
  for (std::uint32_t d = 0; d < 2 * dims; ++d)
    box[d] = static_cast<const T*>(boxes.columns)[std::uint64_t{d} * boxes.rows + position];
  const auto part = static_cast<std::uint32_t>(position / grid.part_boxes);
  const CellRectangle rectangle = cells_of_box(grid, box, dims, 0);
  const auto writer = static_cast<std::uint32_t>(thread % kWritersOfBox);
  if (rectangle.cells > kMostCellsOfBox) {
    if (writer == 0) set_part(table + grid.cells * grid.record_words(), part);
    return;
  }
  for (std::uint32_t i = writer; i < rectangle.cells; i += kWritersOfBox)
    set_part(table + cell_of_rectangle(grid, rectangle, i) * grid.record_words(), part);
}

/// The box around each block, one warp for each block. A block without boxes gets bounds that few
/// pass.
template <class T>
__global__ void blocks_kernel(BoxesView boxes, std::uint32_t dims, std::uint32_t blocks,
                              T* bounds) {
  const std::uint64_t thread = global_thread();
  const auto block = static_cast<std::uint32_t>(thread / 32);
  if (block >= blocks) return;
  const std::uint64_t begin = std::uint64_t{block} * kBlockBoxes;
  const std::uint64_t end = min(begin + kBlockBoxes, std::uint64_t{*boxes.boxes});
  for (std::uint32_t d = 0; d < dims; ++d) {
    const T* const lows = static_cast<const T*>(boxes.columns) + std::uint64_t{d} * boxes.rows;
    const T* const highs = lows + std::uint64_t{dims} * boxes.rows;
    T low = static_cast<T>(INFINITY), high = -static_cast<T>(INFINITY);
    for (std::uint64_t i = begin + threadIdx.x % 32; i < end; i += 32) {
      low = min(low, lows[i]);
      high = max(high, highs[i]);
    }
    for (std::uint32_t offset = 16; offset > 0; offset /= 2) {
      low = min(low, __shfl_down_sync(~0u, low, offset));
      high = max(high, __shfl_down_sync(~0u, high, offset));
    }
    if (threadIdx.x % 32 != 0) continue;
    bounds[std::uint64_t{d} * blocks + block] = low;
    bounds[std::uint64_t{dims + d} * blocks + block] = high;
  }
}

/// The bits of codes that are sorted: bits by which boxes differ, and bits by which boxes differ
/// from other rows.
KeyBits code_bits(const BoxOrder& order, ScalarType scalar) {
  if (order.method == BoxMethod::kNone) return {63, 64};
  // Widened floats have as many bits of 0, or of 1 where they are negative.
  if (order.method == BoxMethod::kSortSweep) return {scalar == ScalarType::kFloat32 ? 29 : 0, 64};
  return {0, static_cast<int>(order.grid.code_bits())};
}

template <class T>
void launch_order(MemoryBudget& budget, const BoxRows& rows, const BoxOrder& order,
                  const DeviceBoxes& boxes, cudaStream_t stream) {
  DeviceBuffer<std::uint64_t> codes(budget, rows.rows, stream), sorted(budget, rows.rows, stream);
  DeviceBuffer<std::uint32_t> unordered(budget, rows.rows, stream);
  codes_kernel<T><<<blocks_for(rows.rows), kBlockThreads, 0, stream>>>(
      rows, order, codes.data(), unordered.data(), boxes.boxes.data());
  check_launch("computing codes of boxes");
  sort_pairs<std::uint32_t>(
      budget, {codes.data(), sorted.data(), unordered.data(), boxes.order.data(), rows.rows},
      code_bits(order, rows.scalar), stream);
  gather_kernel<T><<<blocks_for(rows.rows), kBlockThreads, 0, stream>>>(
      rows, boxes.order.data(), reinterpret_cast<T*>(boxes.columns.data()));
  check_launch("ordering boxes");
}

template <class T>
void launch_table(const DeviceBoxes& boxes, std::uint32_t dims, const LayeredGrid& grid,
                  const LayeredTable& table, cudaStream_t stream) {
  const BoxesView view = boxes.view();
  table_kernel<T>
      <<<blocks_for(std::uint64_t{view.rows} * kWritersOfBox), kBlockThreads, 0, stream>>>(
          view, dims, grid, table.words.data());
  check_launch("writing the layered grid");
  const std::uint32_t blocks = block_count(view.rows);
  blocks_kernel<T><<<blocks_for(std::uint64_t{blocks} * 32), kBlockThreads, 0, stream>>>(
      view, dims, blocks, reinterpret_cast<T*>(table.blocks.data()));
  check_launch("finding the bounds of blocks");
}

}  // namespace

DeviceBoxes order_boxes(MemoryBudget& budget, const BoxRows& rows, const BoxOrder& order,
                        cudaStream_t stream) {
  DeviceBoxes boxes;
  boxes.columns = DeviceBuffer<unsigned char>(
      budget, std::uint64_t{rows.rows} * 2 * rows.dims * scalar_bytes(rows.scalar), stream);
  boxes.order = DeviceBuffer<std::uint32_t>(budget, rows.rows, stream);
  boxes.boxes = DeviceBuffer<unsigned>(budget, 1, stream);
  check(cudaMemsetAsync(boxes.boxes.data(), 0, boxes.boxes.bytes(), stream), "counting boxes");
  const auto launch =
      rows.scalar == ScalarType::kFloat32 ? launch_order<float> : launch_order<double>;
  launch(budget, rows, order, boxes, stream);
  return boxes;
}

LayeredTable build_layered_table(MemoryBudget& budget, const DeviceBoxes& boxes, std::uint32_t dims,
                                 ScalarType scalar, const LayeredGrid& grid, cudaStream_t stream) {
  LayeredTable table;
  table.words = DeviceBuffer<unsigned long long>(budget, grid.table_words(), stream);
  table.blocks = DeviceBuffer<unsigned char>(
      budget, std::uint64_t{block_count(boxes.view().rows)} * 2 * dims * scalar_bytes(scalar),
      stream);
  check(cudaMemsetAsync(table.words.data(), 0, table.words.bytes(), stream),
        "clearing the layered grid");
  const auto launch = scalar == ScalarType::kFloat32 ? launch_table<float> : launch_table<double>;
  launch(boxes, dims, grid, table, stream);
  return table;
}

}  // namespace gpujoin::cuda
