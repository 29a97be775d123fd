#include <algorithm>

#include "core/tile_screen.h"
#include "cuda/device/kernel_helpers.cuh"
#include "cuda/device/shared_memory.h"
#include "cuda/nearest/neighbor_merger.h"
#include "cuda/nearest/row_search.h"

namespace gpujoin::cuda {
namespace {

constexpr std::uint32_t kSamplePoints = 4096;  ///< right points that are compared before
constexpr std::uint64_t kExpectedCandidates = 1 << 12;

constexpr unsigned kWarp = 32;
constexpr unsigned kRowsAtOnce = 4;  ///< of a group of lanes, whose reads wait together
constexpr unsigned kPieceHalves = 8;
static_assert(kScreenTile % kRowsAtOnce == 0);

/// A left point, and the right ones, as they are rounded.
struct RowScreen {
  const __half* left;         ///< [padded_dims]
  const float* left_reject;   ///< [1]
  const __half* right;        ///< [points][padded_dims]
  const float* right_reject;  ///< [points]
  std::uint32_t begin, end;   ///< right points to look at; multiples of kScreenTile
  std::uint32_t padded_dims;  ///< a multiple of 16
  std::uint64_t* candidates;  ///< room for all
  std::uint32_t* found;
  const unsigned* stop;  ///< nonzero on the device: leave
};

/// Adds the products of eight halves to a dot product.
__device__ float add_products(float dot, const uint4& piece, const float4& low,
                              const float4& high) {
  const auto pair = [](const unsigned& halves) {
    return __half22float2(*reinterpret_cast<const __half2*>(&halves));
  };
  const float2 a = pair(piece.x), b = pair(piece.y), c = pair(piece.z), d = pair(piece.w);
  dot = fmaf(a.x, low.x, dot);
  dot = fmaf(a.y, low.y, dot);
  dot = fmaf(b.x, low.z, dot);
  dot = fmaf(b.y, low.w, dot);
  dot = fmaf(c.x, high.x, dot);
  dot = fmaf(c.y, high.y, dot);
  dot = fmaf(d.x, high.z, dot);
  return fmaf(d.y, high.w, dot);
}

/// Lists the right points that pass. `Lanes` lanes of a warp share a right point.
template <unsigned Lanes>
__global__ void __launch_bounds__(kBlockThreads) row_screen_kernel(RowScreen screen) {
  extern __shared__ float4 left[];  // the first four numbers of each piece, then the others
  const std::uint32_t pieces = screen.padded_dims / kPieceHalves;
  for (std::uint32_t i = threadIdx.x; i < screen.padded_dims; i += kBlockThreads) {
    const std::uint32_t piece = i / kPieceHalves, number = i % kPieceHalves;
    reinterpret_cast<float*>(left + (number / 4) * pieces + piece)[number % 4] =
        __half2float(screen.left[i]);
  }
  __syncthreads();
  const float least = *screen.left_reject;
  const unsigned lane = threadIdx.x % Lanes;
  const std::uint64_t stride = global_threads() / Lanes * kRowsAtOnce;
  // All lanes of a warp make the same turns.
  for (std::uint64_t first = screen.begin + global_thread() / Lanes * kRowsAtOnce;
       first < screen.end; first += stride) {
    if (__any_sync(~0u, *static_cast<const volatile unsigned*>(screen.stop) != 0)) return;
    const auto* const rows =
        reinterpret_cast<const uint4*>(screen.right + first * screen.padded_dims);
    float dots[kRowsAtOnce] = {};
    for (std::uint32_t piece = lane; piece < pieces; piece += Lanes) {
      uint4 values[kRowsAtOnce];
#pragma unroll
      for (unsigned r = 0; r < kRowsAtOnce; ++r) values[r] = __ldcs(rows + r * pieces + piece);
      const float4 low = left[piece], high = left[pieces + piece];
#pragma unroll
      for (unsigned r = 0; r < kRowsAtOnce; ++r)
        dots[r] = add_products(dots[r], values[r], low, high);
    }
#pragma unroll
    for (unsigned r = 0; r < kRowsAtOnce; ++r) {
#pragma unroll
      for (unsigned offset = Lanes / 2; offset > 0; offset /= 2)
        dots[r] += __shfl_xor_sync(~0u, dots[r], offset, Lanes);
      if (lane == r % Lanes && dots[r] >= least + screen.right_reject[first + r])
        screen.candidates[atomicAdd(screen.found, 1u)] = (first + r) << 32;
    }
  }
}

template <unsigned Lanes>
void launch_lanes(const RowScreen& screen, int multiprocessors, cudaStream_t stream) {
  const std::size_t bytes = screen.padded_dims * sizeof(float);
  allow_shared_memory(row_screen_kernel<Lanes>, bytes, "setting up the screen");
  const unsigned most = static_cast<unsigned>(multiprocessors) * kBlocksPerMultiprocessor;
  const unsigned blocks =
      blocks_for(std::uint64_t{screen.end - screen.begin} / kRowsAtOnce * Lanes);
  row_screen_kernel<Lanes><<<std::min(blocks, most), kBlockThreads, bytes, stream>>>(screen);
  check_launch("screening points");
}

/// Gives each right point as many lanes as it has pieces, or fewer.
void launch_row_screen(const RowScreen& screen, int multiprocessors, cudaStream_t stream) {
  const std::uint32_t pieces = screen.padded_dims / kPieceHalves;
  if (pieces >= kWarp) return launch_lanes<kWarp>(screen, multiprocessors, stream);
  if (pieces >= 16) return launch_lanes<16>(screen, multiprocessors, stream);
  if (pieces >= 8) return launch_lanes<8>(screen, multiprocessors, stream);
  if (pieces >= 4) return launch_lanes<4>(screen, multiprocessors, stream);
  launch_lanes<2>(screen, multiprocessors, stream);
}

/// A sample of the right points gives the threshold. The list has room for all that passes it.
class RowSearch final : public NeighborSearch {
 public:
  RowSearch(const NeighborQuestion& question, const NearestSide& left, const NearestSide& right,
            MemoryBudget& budget, int multiprocessors, cudaStream_t stream)
      : question_(question),
        multiprocessors_(multiprocessors),
        stream_(stream),
        merger_(question, left, right, budget, stream),
        reject_(budget, 1, stream),
        range_(budget, 2, stream),
        candidates_(budget, std::size_t{merger_.right().tiles} * kScreenTile, stream) {}

  std::uint32_t points() const override { return left().points; }
  std::uint32_t most_slice_points() const override { return kScreenTile; }

  bool start(const NeighborSlice& slice) override {
    const std::uint32_t sampled = std::max(kSamplePoints, 2 * question_.k);
    const std::uint32_t tiles = std::min(right().tiles, (sampled + kScreenTile - 1) / kScreenTile);
    merger_.start(slice, std::min(right().points, tiles * kScreenTile));
    if (tiles < right().tiles) search_rest(tiles * kScreenTile);
    merger_.finish();
    return true;
  }

  bool proceed() override { return true; }

  const SearchReport* report() const override { return merger_.report(); }

  void describe(JoinStats* stats) const override { merger_.describe(right().points, stats); }

 private:
  const RoundedPoints& left() const { return merger_.left(); }
  const RoundedPoints& right() const { return merger_.right(); }

  /// The points before have been merged.
  void search_rest(std::uint32_t begin) {
    reject_all(reject_, stream_);
    merger_.find_thresholds(reject_.data());
    check(cudaMemsetAsync(range_.data(), 0, range_.bytes(), stream_), "clearing counts");
    launch_row_screen(
        {left().values.data(), reject_.data(), right().values.data(), right().reject.data(), begin,
         right().tiles * kScreenTile, merger_.padded_dims(), candidates_.data(), range_.data() + 1,
         question_.stop},
        multiprocessors_, stream_);
    merger_.add(candidates_.data(), range_.data(), range_.data() + 1, kExpectedCandidates);
  }

  const NeighborQuestion question_;
  const int multiprocessors_;
  const cudaStream_t stream_;
  NeighborMerger merger_;
  DeviceBuffer<float> reject_;
  DeviceBuffer<std::uint32_t> range_;  ///< of the candidates: where they begin, and end
  DeviceBuffer<std::uint64_t> candidates_;
};

}  // namespace

std::uint64_t row_search_bytes(const NearestSide& right) {
  return right.rounded().tiles * kScreenTile * sizeof(std::uint64_t);
}

std::unique_ptr<NeighborSearch> make_row_search(const NeighborQuestion& question,
                                                const NearestSide& left, const NearestSide& right,
                                                MemoryBudget& budget, int multiprocessors,
                                                cudaStream_t stream) {
  return std::make_unique<RowSearch>(question, left, right, budget, multiprocessors, stream);
}

}  // namespace gpujoin::cuda
