#include <vector>

#include "cuda/device/multiply_add.cuh"
#include "cuda/tiles/tensor_check.h"
#include "engine/strategy/hard_dot_products.h"

/// Whether to take the sums for wrong, whatever they are: test/device/faults.cu defines it, for
/// tests.
extern "C" bool gpujoin_tensor_sums_are_off() __attribute__((weak));

namespace gpujoin::cuda {
namespace {

/// One warp a product of 16 x dims by dims x 8 halves; rows of `right` are the columns.
__global__ void products_kernel(const std::uint16_t* left, const std::uint16_t* right,
                                const float* starts, std::uint32_t dims, float* sums) {
  const auto two_halves = [](const std::uint16_t* values) {
    return *reinterpret_cast<const unsigned*>(values);
  };
  const unsigned row = threadIdx.x / 4, column = threadIdx.x % 4 * 2;
  const std::uint64_t product = blockIdx.x;
  const std::uint16_t* const a = left + (product * HardDotProducts::kRows + row) * dims + column;
  const std::uint16_t* const b =
      right + (product * HardDotProducts::kColumns + row) * dims + column;
  const float* const start = starts + product * HardDotProducts::kRows + row;
  float sum[4] = {start[0], start[0], start[8], start[8]};
  for (std::uint32_t k = 0; k < dims; k += 16) {
    const unsigned rows[4] = {two_halves(a + k), two_halves(a + 8 * dims + k),
                              two_halves(a + k + 8), two_halves(a + 8 * dims + k + 8)};
    multiply_add(sum, rows, two_halves(b + k), two_halves(b + k + 8), sum);
  }
  float* const out =
      sums + (product * HardDotProducts::kRows + row) * HardDotProducts::kColumns + column;
  out[0] = sum[0];
  out[1] = sum[1];
  out[8 * HardDotProducts::kColumns] = sum[2];
  out[8 * HardDotProducts::kColumns + 1] = sum[3];
}

template <class T>
DeviceBuffer<T> to_device(MemoryBudget& budget, const std::vector<T>& values, cudaStream_t stream) {
  DeviceBuffer<T> buffer(budget, values.size(), stream);
  check(
      cudaMemcpyAsync(buffer.data(), values.data(), buffer.bytes(), cudaMemcpyHostToDevice, stream),
      "testing tensor cores");
  return buffer;
}

bool sums_are_close(std::uint32_t dims, cudaStream_t stream) {
  MemoryBudget some(0);
  const HardDotProducts hard = make_hard_dot_products(dims);
  const DeviceBuffer<std::uint16_t> left = to_device(some, hard.left, stream);
  const DeviceBuffer<std::uint16_t> right = to_device(some, hard.right, stream);
  const DeviceBuffer<float> starts = to_device(some, hard.starts, stream);
  std::vector<float> sums(hard.starts.size() * HardDotProducts::kColumns);
  const DeviceBuffer<float> device_sums(some, sums.size(), stream);
  products_kernel<<<hard.products, 32, 0, stream>>>(left.data(), right.data(), starts.data(), dims,
                                                    device_sums.data());
  check_launch("testing tensor cores");
  copy_to_host(sums.data(), device_sums.data(), sums.size(), stream);
  check(cudaStreamSynchronize(stream), "testing tensor cores");
  return largest_error(hard, sums.data()) <= 1;
}

}  // namespace

bool tensor_sums_are_close(DeviceContext& context, cudaStream_t stream) {
  if (gpujoin_tensor_sums_are_off != nullptr && gpujoin_tensor_sums_are_off()) return false;
  std::optional<bool>& known = context.tensor_sums_are_close;
  // A single step, whose bound is the tightest, and a chain of them.
  if (!known) known = sums_are_close(16, stream) && sums_are_close(128, stream);
  return *known;
}

}  // namespace gpujoin::cuda
