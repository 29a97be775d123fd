// Times the filter of GCMF as it was published, SMF (thesis, section 4.3.1 and algorithm 3), which
// gpujoin.box_method = sort_sweep is an improvement of: the bounds of both sides sorted together,
// the ranks of each box's bounds in that order, and a group of threads for each box that passes all
// bounds between its own, those of its own side and high ones among them. Boxes and arguments are
// those of gpujoin_measure_boxes. Prints rows of a Markdown table.
//
//   gpujoin_measure_smf 100000,1000000,1
//
// Times are the median of five, without copies: boxes are on the device before, and pairs stay
// there.

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cub/cub.cuh>
#include <stdexcept>
#include <vector>

#include "../unit/points.h"

namespace {

using gpujoin::test::Random;

constexpr unsigned kThreads = 256;
constexpr unsigned kGroup = 32;  ///< 8 and 128 take as long, or longer

void check(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

template <class T>
class Array {
 public:
  explicit Array(std::size_t size) { check(cudaMalloc(&data_, size * sizeof(T))); }
  ~Array() { cudaFree(data_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  T* data() const { return static_cast<T*>(data_); }

 private:
  void* data_ = nullptr;
};

unsigned blocks_for(std::uint64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

/// Entry 2 * i is the low bound of box i along the first dimension, 2 * i + 1 the high one.
__global__ void entries_kernel(const float4* boxes, std::uint32_t count, float* bounds,
                               std::uint32_t* entries) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  bounds[2 * i] = boxes[i].x;
  bounds[2 * i + 1] = boxes[i].z;
  entries[2 * i] = 2 * i;
  entries[2 * i + 1] = 2 * i + 1;
}

__global__ void ranks_kernel(const std::uint32_t* sorted, std::uint32_t entries,
                             std::uint32_t* ranks) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i < entries) ranks[sorted[i]] = i;
}

/// A box finds the others whose low bound comes between its own bounds.
__global__ void filter_kernel(const float4* boxes, std::uint32_t left, std::uint32_t count,
                              const std::uint32_t* sorted, const std::uint32_t* ranks, uint2* pairs,
                              unsigned long long room, unsigned long long* found) {
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  const auto i = static_cast<std::uint32_t>(thread / kGroup);
  if (i >= count) return;
  const float4 box = boxes[i];
  const std::uint32_t end = ranks[2 * i + 1];
  for (std::uint32_t at = ranks[2 * i] + 1 + thread % kGroup; at < end; at += kGroup) {
    const std::uint32_t other = sorted[at] / 2;
    if (sorted[at] % 2 != 0 || (i < left) == (other < left)) continue;
    const float4 partner = boxes[other];
    if (partner.y > box.w || box.y > partner.w) continue;
    const unsigned long long place = atomicAdd(found, 1ull);
    if (place < room) pairs[place] = i < left ? make_uint2(i, other) : make_uint2(other, i);
  }
}

/// Low corners and then high ones, as gpujoin_measure_boxes makes them.
void append_boxes(std::vector<float4>& boxes, std::uint32_t rows, double density,
                  std::uint64_t seed) {
  const double side = std::sqrt(density / rows);
  Random random(seed);
  for (std::uint32_t row = 0; row < rows; ++row) {
    const double x = random.unit(), y = random.unit();
    boxes.push_back(make_float4(static_cast<float>(x), static_cast<float>(y),
                                static_cast<float>(x + side), static_cast<float>(y + side)));
  }
}

void measure(std::uint32_t left, std::uint32_t right, double density) {
  constexpr std::uint64_t kRoom = std::uint64_t{1} << 27;
  std::vector<float4> rows;
  append_boxes(rows, left, density, 1);
  append_boxes(rows, right, density, 2);
  const std::uint32_t count = left + right, entries = 2 * count;
  const Array<float4> boxes(count);
  const Array<float> bounds(entries), sorted_bounds(entries);
  const Array<std::uint32_t> unsorted(entries), sorted(entries), ranks(entries);
  const Array<uint2> pairs(kRoom);
  const Array<unsigned long long> found(1);
  std::size_t bytes = 0;
  const auto sort = [&](void* scratch) {
    check(cub::DeviceRadixSort::SortPairs(scratch, bytes, bounds.data(), sorted_bounds.data(),
                                          unsorted.data(), sorted.data(), entries));
  };
  sort(nullptr);
  const Array<unsigned char> scratch(bytes);
  check(
      cudaMemcpy(boxes.data(), rows.data(), rows.size() * sizeof(float4), cudaMemcpyHostToDevice));

  cudaEvent_t begin, ordered, end;
  for (cudaEvent_t* const event : {&begin, &ordered, &end}) check(cudaEventCreate(event));
  std::vector<float> sort_ms(5), filter_ms(5);
  for (std::size_t round = 0; round < sort_ms.size(); ++round) {
    check(cudaMemset(found.data(), 0, sizeof(unsigned long long)));
    check(cudaEventRecord(begin));
    entries_kernel<<<blocks_for(count), kThreads>>>(boxes.data(), count, bounds.data(),
                                                    unsorted.data());
    sort(scratch.data());
    ranks_kernel<<<blocks_for(entries), kThreads>>>(sorted.data(), entries, ranks.data());
    check(cudaEventRecord(ordered));
    filter_kernel<<<blocks_for(std::uint64_t{count} * kGroup), kThreads>>>(
        boxes.data(), left, count, sorted.data(), ranks.data(), pairs.data(), kRoom, found.data());
    check(cudaEventRecord(end));
    check(cudaEventSynchronize(end));
    check(cudaEventElapsedTime(&sort_ms[round], begin, ordered));
    check(cudaEventElapsedTime(&filter_ms[round], ordered, end));
  }
  for (const cudaEvent_t event : {begin, ordered, end}) cudaEventDestroy(event);
  unsigned long long total = 0;
  check(cudaMemcpy(&total, found.data(), sizeof total, cudaMemcpyDeviceToHost));
  std::sort(sort_ms.begin(), sort_ms.end());
  std::sort(filter_ms.begin(), filter_ms.end());
  std::printf("| %u | %u | %g | %llu | %.2f | %.2f |\n", left, right, density, total, sort_ms[2],
              filter_ms[2]);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  std::printf(
      "| left | right | density | pairs | sort ms | filter ms "
      "|\n|---:|---:|---:|---:|---:|---:|\n");
  try {
    for (int i = 1; i < count; ++i) {
      unsigned left, right;
      double density;
      if (std::sscanf(arguments[i], "%u,%u,%lf", &left, &right, &density) != 3)
        throw std::runtime_error(std::string("not LEFT_ROWS,RIGHT_ROWS,DENSITY: ") + arguments[i]);
      measure(left, right, density);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", arguments[0], error.what());
    return 1;
  }
  return 0;
}
